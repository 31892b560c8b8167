package openapi

import "net/http"

// Silences describes /notify/{KEY}/silences.
func Silences() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "silences", Tag: ofMessages,
		Summary: "List the silences of a key (with a queue)",
		Answers: map[int]Answer{
			http.StatusOK: answersJSON("The silences that hold now, and those that are planned. Of each line `silence` of the "+
				"key in the configuration it is the present silence, or the next one.", listOf(bodyOf("Silence"))),
			http.StatusForbidden:          result(silenceForbidden),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}, {
		Method: http.MethodPost, ID: "silence", Tag: ofMessages,
		Summary: "Make a silence of a key (with a queue)",
		Description: "An opening or worsening of an incident that matches waits until the silence ends. If it is resolved before, nobody is " +
			"told; otherwise one message tells what is open. Other messages that match are not sent. `incident`, `tag` and `title` must all " +
			"match; one of them is required.",
		Body: forms(Schema{"type": "object", "properties": Schema{
			"from": Schema{
				"type": "string", "format": "date-time",
				"description": "When it begins, at most a year from now. Without it, and with a time in the past, it begins now.",
			},
			"for": described(text(), "How long it lasts, such as `30m`, `2h` or `3d`, at most 30 days. It counts from `from`."),
			"until": described(text(), "When it ends, at most 30 days after `from`: a time, such as `2026-03-28T07:00:00Z`; a time of the day "+
				"by the server's clock, such as `08:00`; or `resolved`, when the incident is. Either `for` or `until` is required."),
			"incident": described(text(), "The name of an incident, or the ID that destinations know it by."),
			"tag":      described(text(), "A tag of URLs; `all` stands for every URL."),
			"title":    described(text(), "What the title begins with, in any case; `*` stands for any text."),
			"reason":   Schema{"type": "string", "maxLength": 200},
			"tell": described(Schema{"type": "boolean"},
				"Whether a message tells its beginning, and another one its end. In a form, also `yes`."),
			"who": described(text(), "Who makes it. A user that Caddy's authentication has found takes precedence."),
		}, "additionalProperties": false}, mediaJSON, mediaForm),
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
			http.StatusServiceUnavailable:    result("The queue cannot be written at the moment."),
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
		Body: forms(Schema{"type": "object", "properties": Schema{
			"for":   described(text(), "How much longer it lasts, such as `1h`."),
			"until": described(text(), "When it ends: a time, such as `2026-03-28T07:00:00Z`, or the next time of the day, such as `08:00`."),
		}, "additionalProperties": false}, mediaJSON, mediaForm),
		Answers: map[int]Answer{
			http.StatusOK:                    answersJSON("The silence.", bodyOf("Silence")),
			http.StatusBadRequest:            result("The new end is missing or malformed, not later, or more than 30 days from now."),
			http.StatusForbidden:             result(silenceForbidden),
			http.StatusNotFound:              result(silenceEnded),
			http.StatusConflict:              result("The silence stands in the configuration."),
			http.StatusRequestEntityTooLarge: result("The body is too large."),
			http.StatusUnsupportedMediaType:  result("The body is neither JSON nor a form."),
			http.StatusServiceUnavailable:    result("The queue cannot be written at the moment."),
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
			http.StatusServiceUnavailable: result("The queue cannot be written at the moment."),
		},
	}}}
}
