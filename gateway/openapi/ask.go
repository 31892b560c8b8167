package openapi

import "net/http"

// Ask describes /notify/asks/{ID}.
func Ask() About {
	const noSuchQuestion = "The address leads to no question, or it was forgotten."
	asked := func(description string) Answer {
		return says(description, map[string]Schema{mediaJSON: bodyOf("Question"), mediaHTML: bodyOf("Page")}, "Vary", "Cache-Control").
			called("Asked")
	}
	return About{ID: Parameter{Description: "The last segment of the link in a message. Each destination has another one, and who has " +
		"asked never sees it.", Schema: Schema{"type": "string", "pattern": "^[a-z2-7]{52}$"}}, Operations: []Operation{{
		Method: http.MethodGet, ID: "getQuestion", Tag: ofMessages,
		Summary:     "Show a question (with a queue)",
		Description: "Whoever has the link may. It changes nothing, because scanners of mails follow links.",
		Parameters:  common("Accept"),
		Answers: map[int]Answer{
			http.StatusOK:                 asked("The state of the question."),
			http.StatusNotFound:           result(noSuchQuestion),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPost, ID: "answerQuestion", Tag: ofMessages,
		Summary:     "Answer a question (with a queue)",
		Description: "Whoever has the link may. The first answer counts, at all gateways, and is stored before the response.",
		Parameters:  common("Accept"),
		Body:        &Body{Content: map[string]Media{mediaForm: {Schema: bodyOf("Reply")}}},
		Answers: map[int]Answer{
			http.StatusOK:                 asked("The answer counts."),
			http.StatusBadRequest:         result("The form is wrong, or the answer is none of the options."),
			http.StatusForbidden:          result("A page of another site has sent the request."),
			http.StatusNotFound:           result(noSuchQuestion),
			http.StatusConflict:           asked("The question was decided before, which still counts."),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}
