package openapi

import "net/http"

const (
	rulerForbidden = "There is no queue, or the key does not use it or does not accept `prometheus`; or a page of another site has sent " +
		"the request."
	rulerNoKey   = "There is no such key."
	rulerNoToken = "The token that `from prometheus` demands, or else a token of the key, is missing or wrong."
)

// RulerAlerts describes /notify/{KEY}/prometheus/api/v2/alerts.
func RulerAlerts() About {
	alert := Schema{"type": "object", "required": []string{"labels"}, "properties": Schema{
		"labels": Schema{
			"type": "object", "additionalProperties": text(),
			"description": "What names the alert. Alerts of one `alertname` are one incident.",
		},
		"annotations": Schema{"type": "object", "additionalProperties": text()},
		"startsAt":    Schema{"type": "string", "format": "date-time"},
		"endsAt": Schema{
			"type": "string", "format": "date-time",
			"description": "One in the past resolves the alert. Default: five minutes from now.",
		},
		"generatorURL": text(),
	}}
	return About{Key: keyToSendTo, Operations: []Operation{{
		Method: http.MethodGet, ID: "rulerAlerts", Tag: ofMessages,
		Summary: "List the open alerts that rulers have posted (with a queue)",
		Answers: map[int]Answer{
			http.StatusOK: answersJSON("The alerts, in the form of Alertmanager.", listOf(Schema{"type": "object"})).
				with("Cache-Control"),
			http.StatusUnauthorized:       unauthorized(noReaderOfKey),
			http.StatusForbidden:          result(rulerForbidden),
			http.StatusNotFound:           result(rulerNoKey),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}, {
		Method: http.MethodPost, ID: "postRulerAlerts", Tag: ofMessages,
		Summary: "Post alerts as a ruler, such as Prometheus, posts them to Alertmanager (with a queue)",
		Description: "An alert that is posted again is no news, and one that is absent is not gone. What has changed in an incident is told " +
			"in one message, after a time.",
		Body: &Body{Required: true, Content: map[string]Media{mediaJSON: {Schema: listOf(alert)}}},
		Answers: map[int]Answer{
			http.StatusOK:           says("All alerts are stored.", map[string]Schema{mediaText: text()}, "Cache-Control"),
			http.StatusBadRequest:   result("The body is not an array of alerts, or an alert has no label."),
			http.StatusUnauthorized: unauthorized(rulerNoToken),
			http.StatusForbidden:    result(rulerForbidden),
			http.StatusNotFound:     result(rulerNoKey),
			http.StatusRequestEntityTooLarge: result("The request is too large, or an incident has so many alerts that some do not fit; the " +
				"others are stored."),
			http.StatusServiceUnavailable: result("The queue cannot be written at the moment, or too many messages are under way."),
		},
	}}}
}

// RulerStatus describes /notify/{KEY}/prometheus/api/v2/status.
func RulerStatus() About {
	return rulerProbe("rulerStatus", "Get the status that Alertmanager has for its clients (with a queue)",
		answersJSON("The version and the start of the gateway.", Schema{"type": "object"}).with("Cache-Control"))
}

// RulerHealthy describes /notify/{KEY}/prometheus/-/healthy.
func RulerHealthy() About {
	return rulerProbe("rulerHealthy", "Ask whether the gateway runs, as a client of Alertmanager (with a queue)",
		says("It does.", map[string]Schema{mediaText: text()}, "Cache-Control"))
}

// RulerReady describes /notify/{KEY}/prometheus/-/ready.
func RulerReady() About {
	return rulerProbe("rulerReady", "Ask whether alerts can be stored, as a client of Alertmanager (with a queue)",
		says("The queue can be read.", map[string]Schema{mediaText: text()}, "Cache-Control"))
}

func rulerProbe(id, summary string, ok Answer) About {
	return About{Key: keyToSendTo, Operations: []Operation{{
		Method: http.MethodGet, ID: id, Tag: ofMessages, Summary: summary,
		Answers: map[int]Answer{
			http.StatusOK:                 ok,
			http.StatusUnauthorized:       unauthorized(rulerNoToken),
			http.StatusForbidden:          result(rulerForbidden),
			http.StatusNotFound:           result(rulerNoKey),
			http.StatusServiceUnavailable: result("The queue cannot be used at the moment."),
		},
	}}}
}
