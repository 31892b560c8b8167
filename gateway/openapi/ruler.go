package openapi

import "net/http"

const (
	rulerForbidden = "There is no queue, or the key does not use it or does not accept `prometheus`; or a page of another site has sent " +
		"the request."
	rulerNoToken = "The token that `from prometheus` demands, or else a token of the key, is missing or wrong."
)

// RulerAlerts describes /notify/{KEY}/prometheus/api/v2/alerts.
func RulerAlerts() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listRulerAlerts", Tag: ofMessages, Secrets: WithToken | WithLogin,
		Summary: "List the open alerts that rulers have posted (with a queue)",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The alerts, in the form of Alertmanager.", listOf(Schema{"type": "object"})),
			http.StatusUnauthorized:       unauthorized(noReaderOfKey),
			http.StatusForbidden:          result(rulerForbidden),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}, {
		Method: http.MethodPost, ID: "postRulerAlerts", Tag: ofMessages,
		Summary: "Post alerts as a ruler, such as Prometheus, posts them to Alertmanager (with a queue)",
		Description: "An alert that is posted again is no news, and one that is absent is not gone. What has changed in an incident is told " +
			"in one message, after a time.",
		Body: &Body{Required: true, Content: map[string]Media{mediaJSON: {Schema: listOf(bodyOf("RulerAlert"))}}},
		Answers: map[int]Answer{
			http.StatusOK:           done("All alerts are stored."),
			http.StatusBadRequest:   result("The body is not an array of alerts, or an alert has no label."),
			http.StatusUnauthorized: unauthorized(rulerNoToken),
			http.StatusForbidden:    result(rulerForbidden),
			http.StatusNotFound:     result(noSuchKey),
			http.StatusRequestEntityTooLarge: result("The request is too large, or an incident has so many alerts that some do not fit; the " +
				"others are stored."),
			http.StatusServiceUnavailable: result("The queue cannot be written at the moment, or too many messages are under way."),
		},
	}}}
}

// RulerStatus describes /notify/{KEY}/prometheus/api/v2/status.
func RulerStatus() About {
	return rulerProbe("getRulerStatus", "Get the status that Alertmanager has for its clients (with a queue)",
		answersJSON("The version and the start of the gateway.", Schema{"type": "object"}))
}

// RulerHealthy describes /notify/{KEY}/prometheus/-/healthy.
func RulerHealthy() About {
	return rulerProbe("getRulerHealth", "Ask whether the gateway runs, as a client of Alertmanager (with a queue)",
		done("It does."))
}

// RulerReady describes /notify/{KEY}/prometheus/-/ready.
func RulerReady() About {
	return rulerProbe("getRulerReadiness", "Ask whether alerts can be stored, as a client of Alertmanager (with a queue)",
		done("The queue can be read."))
}

// done returns an answer that is only read by people.
func done(description string) Answer {
	return says(description, map[string]Schema{mediaText: text()}, "Cache-Control").called("Done")
}

func rulerProbe(id, summary string, ok Answer) About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: id, Tag: ofMessages, Summary: summary,
		Answers: map[int]Answer{
			http.StatusOK:                 ok,
			http.StatusUnauthorized:       unauthorized(rulerNoToken),
			http.StatusForbidden:          result(rulerForbidden),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result("The queue cannot be used at the moment."),
		},
	}}}
}
