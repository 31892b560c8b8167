package httpapi

import "net/http"

func aboutSilences() about {
	return about{operations: []operation{
		{
			method: http.MethodGet, ID: "silences", Tag: ofMessages,
			Summary: "List the silences of a key (with a queue)",
			Answers: map[int]reply{
				http.StatusOK:                 answersJSON("The silences that hold now.", listOf(bodyOf("Silence"))),
				http.StatusForbidden:          result(silenceForbidden),
				http.StatusNotFound:           result(noSuchKey),
				http.StatusServiceUnavailable: result(queueUnreadable),
			},
		},
		{
			method: http.MethodPost, ID: "silence", Tag: ofMessages,
			Summary:     "Make a silence of a key (with a queue)",
			Description: "An opening or worsening of an incident that matches waits until the silence ends. If it is resolved before, nobody is told; otherwise one message tells what is open. Other messages that match are not sent. `incident`, `tag` and `title` must all match; one of them is required.",
			Body: forms(schema{"type": "object", "properties": schema{
				"for":      described(text(), "How long, such as `30m`, `2h` or `3d`, at most 30 days."),
				"until":    schema{"type": "string", "format": "date-time", "description": "When it ends, at most 30 days from now. Either `for` or `until` is required."},
				"incident": described(text(), "The name of an incident, or the ID that destinations know it by."),
				"tag":      described(text(), "A tag of URLs; `all` stands for every URL."),
				"title":    described(text(), "What the title begins with, in any case."),
				"reason":   schema{"type": "string", "maxLength": 200},
				"who":      described(text(), "Who makes it. A user that Caddy's authentication has found takes precedence."),
			}, "additionalProperties": false}, mediaJSON, mediaForm),
			Answers: map[int]reply{
				http.StatusCreated:               answersJSON("The silence.", bodyOf("Silence")).header("Location", schema{"description": "The address of the silence.", "schema": text()}),
				http.StatusBadRequest:            result("The silence is wrong: it matches nothing, has no end, would end in the past or last longer than 30 days."),
				http.StatusForbidden:             result(silenceForbidden),
				http.StatusNotFound:              result(noSuchKey),
				http.StatusConflict:              result("The key has 200 silences."),
				http.StatusRequestEntityTooLarge: result("The body is too large."),
				http.StatusUnsupportedMediaType:  result("The body is neither JSON nor a form."),
				http.StatusServiceUnavailable:    result("The queue cannot be written at the moment."),
			},
		},
	}}
}

func aboutSilence() about {
	return about{id: parameter{Description: "The ID of a silence.", Schema: schema{"type": "string", "format": "uuid"}}, operations: []operation{
		{
			method: http.MethodGet, ID: "getSilence", Tag: ofMessages,
			Summary: "Get a silence",
			Answers: map[int]reply{
				http.StatusOK:                 answersJSON("The silence.", bodyOf("Silence")),
				http.StatusForbidden:          result(silenceForbidden),
				http.StatusNotFound:           result(silenceEnded),
				http.StatusServiceUnavailable: result(queueUnreadable),
			},
		},
		{
			method: http.MethodDelete, ID: "endSilence", Tag: ofMessages,
			Summary:     "End a silence",
			Description: "What it has held and is still open is told.",
			Answers: map[int]reply{
				http.StatusOK:                 answersJSON("The silence that has ended.", bodyOf("Silence")),
				http.StatusForbidden:          result(silenceForbidden),
				http.StatusNotFound:           result(silenceEnded),
				http.StatusServiceUnavailable: result("The queue cannot be written at the moment."),
			},
		},
	}}
}
