package openapi

import "net/http"

// Ask describes /notify/asks/{ID}.
func Ask() About {
	const noSuchQuestion = "The address leads to no question, or it was forgotten."
	shown := map[string]Schema{
		mediaJSON: bodyOf("Question"),
		mediaHTML: described(text(), "The page of the question."),
	}
	return About{ID: Parameter{Description: "The last segment of the link in a message. Each destination has another one, and who has " +
		"asked never sees it.", Schema: Schema{"type": "string", "pattern": "^[a-z2-7]{52}$"}}, Operations: []Operation{{
		Method: http.MethodGet, ID: "question", Tag: ofMessages,
		Summary:     "Show a question (with a queue)",
		Description: "Whoever has the link may. It changes nothing, because scanners of mails follow links.",
		Parameters:  common("Accept"),
		Answers: map[int]Answer{
			http.StatusOK:                 says("The state of the question.", shown, "Vary", "Cache-Control"),
			http.StatusNotFound:           result(noSuchQuestion),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPost, ID: "answerQuestion", Tag: ofMessages,
		Summary:     "Answer a question (with a queue)",
		Description: "Whoever has the link may. The first answer counts, at all gateways, and is stored before the response.",
		Parameters:  common("Accept"),
		Body: &Body{Content: map[string]Media{mediaForm: {Schema: object(Schema{
			"answer": described(text(), "One of the options, or a text of at most 2,000 characters."),
			"by":     described(text(), "Who answers, unless the site has authenticated somebody or the link belongs to a device."),
		})}}},
		Answers: map[int]Answer{
			http.StatusOK:                 says("The answer counts.", shown, "Vary", "Cache-Control"),
			http.StatusBadRequest:         result("The form is wrong, or the answer is none of the options."),
			http.StatusForbidden:          result("A page of another site has sent the request."),
			http.StatusNotFound:           result(noSuchQuestion),
			http.StatusConflict:           says("The question was decided before, which still counts.", shown, "Vary", "Cache-Control"),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}
