package openapi

import "net/http"

// Silences describes /notify/{KEY}/silences.
func Silences() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listSilences", Tag: ofMessages,
		Summary: "List the silences of a key (with a queue)",
		Answers: map[int]Answer{
			http.StatusOK: answersJSON("The silences that hold now, and those that are planned. Of each line `silence` of the "+
				"key in the configuration it is the present silence, or the next one.", listOf(bodyOf("Silence"))),
			http.StatusForbidden:          result(silenceForbidden),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}, {
		Method: http.MethodPost, ID: "addSilence", Tag: ofMessages,
		Summary: "Make a silence of a key (with a queue)",
		Description: "An opening or worsening of an incident that matches waits until the silence ends. If it is resolved before, nobody is " +
			"told; otherwise one message tells what is open. Other messages that match are not sent. `incident`, `tag` and `title` must all " +
			"match; one of them is required.",
		Body: forms(bodyOf("NewSilence"), mediaJSON, mediaForm),
		Answers: map[int]Answer{
			http.StatusCreated: answersJSON("The silence.", bodyOf("Silence")).
				header("Location", Schema{"description": "The address of the silence.", "schema": text()}),
			http.StatusBadRequest: result("The silence is wrong: it matches nothing, has no end, would end in the past or before it " +
				"begins, begin in more than a year or last longer than 30 days."),
			http.StatusForbidden:             result(silenceForbidden),
			http.StatusNotFound:              result(noSuchKey),
			http.StatusConflict:              result("The key has 200 silences."),
			http.StatusRequestEntityTooLarge: result("The body is too large."),
			http.StatusUnsupportedMediaType:  result("The body is neither JSON nor a form."),
			http.StatusServiceUnavailable:    result(queueUnwritable),
		},
	}}}
}

// Silence describes /notify/{KEY}/silences/{ID}.
func Silence() About {
	return About{ID: uuid("The ID of a silence."), Operations: []Operation{{
		Method: http.MethodGet, ID: "getSilence", Tag: ofMessages,
		Summary: "Get a silence",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The silence.", bodyOf("Silence")),
			http.StatusForbidden:          result(silenceForbidden),
			http.StatusNotFound:           result(silenceEnded),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}, {
		Method: http.MethodPost, ID: "extendSilence", Tag: ofMessages,
		Summary: "Make a silence longer",
		Body:    forms(bodyOf("LongerSilence"), mediaJSON, mediaForm),
		Answers: map[int]Answer{
			http.StatusOK:                    answersJSON("The silence.", bodyOf("Silence")),
			http.StatusBadRequest:            result("The new end is missing or malformed, not later, or more than 30 days from now."),
			http.StatusForbidden:             result(silenceForbidden),
			http.StatusNotFound:              result(silenceEnded),
			http.StatusConflict:              result("The silence stands in the configuration."),
			http.StatusRequestEntityTooLarge: result("The body is too large."),
			http.StatusUnsupportedMediaType:  result("The body is neither JSON nor a form."),
			http.StatusServiceUnavailable:    result(queueUnwritable),
		},
	}, {
		Method: http.MethodDelete, ID: "endSilence", Tag: ofMessages,
		Summary:     "End a silence",
		Description: "What it has held and is still open is told. A planned one is removed.",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The silence that has ended.", bodyOf("Silence")),
			http.StatusForbidden:          result(silenceForbidden),
			http.StatusNotFound:           result(silenceEnded),
			http.StatusConflict:           result("The silence stands in the configuration."),
			http.StatusServiceUnavailable: result(queueUnwritable),
		},
	}}}
}
