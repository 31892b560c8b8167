package openapi

import "net/http"

// Message describes /notify/messages/{ID}.
func Message() About {
	return About{ID: uuid("The ID of a message, from a response."), Operations: []Operation{{
		Method: http.MethodGet, ID: "getMessage", Tag: ofMessages,
		Summary:     "Read the state of a message (with a queue)",
		Description: "With `Accept: text/event-stream`, the state of a question is streamed until it is decided.",
		Secrets:     WithoutSecret | WithToken,
		Parameters:  common("Accept", "Wait", "Prefer"),
		Answers: map[int]Answer{
			http.StatusOK: says("The state of the message, which never includes its text.",
				withEvents(recordsOr(bodyOf("QueuedMessage"), nil)), "Vary", "Cache-Control"),
			http.StatusBadRequest: result("`wait` is not a number of seconds."),
			http.StatusNotFound:   result(noSuchMessage),
			http.StatusTooManyRequests: result("250 requests and streams from the address of the client wait, or 500 for the key; " +
				"try again after `Retry-After`, or without `wait`."),
			http.StatusServiceUnavailable: result("The queue cannot be read at the moment, or 2000 clients wait at the gateway."),
		},
	}, {
		Method: http.MethodDelete, ID: "cancelMessage", Tag: ofMessages,
		Summary:     "Cancel the deliveries that wait (with a queue)",
		Description: "Deliveries in progress are not cancelled.",
		Secrets:     WithoutSecret | WithToken,
		Parameters:  common("Accept"),
		Answers: map[int]Answer{
			http.StatusOK: says("The state of the message, which never includes its text.", recordsOr(bodyOf("QueuedMessage"), nil),
				"Vary", "Cache-Control"),
			http.StatusUnauthorized: unauthorized("The key of the message has a token, which is missing or wrong."),
			http.StatusForbidden: result("A page of another site has sent the request, or the key has no token, and others than its " +
				"senders know the ID: it has a reader or a device, or accepts no direct messages."),
			http.StatusNotFound:           result(noSuchMessage),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}}}
}

// withEvents adds server-sent events to the media types of an answer.
func withEvents(content map[string]Schema) map[string]Schema {
	content[mediaEvents] = described(text(), "The data of an event are an object with `id` and `ask`, which is a `Question`.")
	return content
}

// Incidents describes /notify/incidents.
func Incidents() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listIncidents", Tag: ofMessages,
		Summary: "List the incidents of keys with rules (with a queue)",
		Description: "Open ones come first, then acknowledged, then resolved ones. Of each, those whose next step begins soonest come first, " +
			"then failures, and the newest. Only for who may manage.",
		Parameters: []any{
			inQuery("key", text(), "Only incidents of this key."),
			inQuery("state", oneOf("open", "acknowledged", "resolved"), "Only incidents in this state."),
			inQuery("day", Schema{"type": "string", "format": "date"}, "Only incidents that were opened last on this day, in the server's zone."),
			inQuery("limit", Schema{"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "How many a page has."),
			inQuery("after", text(), "Where the page begins; `next` has it."),
		},
		Answers: map[int]Answer{
			http.StatusOK: says("A page of incidents, which never includes the texts of messages.",
				map[string]Schema{mediaJSON: bodyOf("Incidents")}, "Vary", "Cache-Control"),
			http.StatusSeeOther:           redirected(),
			http.StatusBadRequest:         result("A parameter is wrong."),
			http.StatusForbidden:          result("The client may not manage."),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}}}
}

// Incident describes /notify/incidents/{ID}.
func Incident() About {
	return About{ID: Parameter{
		Description: "The public ID of an incident, from the link in a message.",
		Schema:      Schema{"type": "string", "pattern": "^[a-z2-7]{26}$"},
	}, Operations: []Operation{{
		Method: http.MethodGet, ID: "getIncident", Tag: ofMessages,
		Summary:     "Read an incident (with a queue)",
		Description: "Whoever knows the ID may. It changes nothing, because scanners of mails follow links.",
		Parameters:  common("Accept"),
		Answers: map[int]Answer{
			http.StatusOK: says("The incident, which never includes the texts of messages.", map[string]Schema{
				mediaJSON: bodyOf("IncidentRecord"),
				mediaHTML: bodyOf("Page"),
			}, "Vary", "Cache-Control").called("IncidentNow"),
			http.StatusNotFound:           result(noSuchIncident),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPost, ID: "changeIncident", Tag: ofMessages,
		Summary: "Acknowledge, resolve or silence an incident (with a queue)",
		Description: "Whoever knows the ID may acknowledge and resolve it; only who may manage may silence it. After an acknowledgement, no " +
			"further step is told. Only the first one counts until it ends. A page of another site may acknowledge, if the request has no cookie " +
			"and no authentication.",
		Parameters: common("Accept"),
		Body:       &Body{Content: map[string]Media{mediaForm: {Schema: bodyOf("IncidentChange")}}},
		Answers: map[int]Answer{
			http.StatusOK: says("The incident after the change. If it was acknowledged or resolved before, that still counts.", map[string]Schema{
				mediaJSON: bodyOf("IncidentRecord"),
				mediaHTML: bodyOf("Page"),
			}, "Vary", "Cache-Control").called("IncidentNow"),
			http.StatusNoContent: says("A page of another site, such as the web app of ntfy, has acknowledged the incident. "+
				"It learns nothing else.", nil, "Cache-Control"),
			http.StatusBadRequest: result("The form is wrong."),
			http.StatusForbidden: result("A page of another site wants more than to acknowledge, or shows who its reader is; " +
				"or a silence is wanted by somebody who may not manage."),
			http.StatusNotFound:           result(noSuchIncident),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// Health describes /notify/status.
func Health() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "getHealth", Tag: ofDescription,
		Summary:    "Whether this gateway can take messages, for load balancers",
		Parameters: common("Accept"),
		Answers: map[int]Answer{
			http.StatusOK: says("It can.", map[string]Schema{
				mediaText: described(text(), "`OK`."),
				mediaJSON: object(Schema{"status": oneOf("OK")}, "status"),
			}, "Vary"),
			http.StatusServiceUnavailable: says("The queue cannot be written. `Retry-After` says when to ask again.", map[string]Schema{
				mediaText: described(text(), "The reason."),
				mediaJSON: object(Schema{
					"status": oneOf("unavailable"),
					"error":  described(text(), "The reason."),
				}, "status", "error"),
			}),
		},
	}}}
}

// Description describes /notify/openapi.json.
func Description() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "getDescription", Tag: ofDescription,
		Summary:    "This document",
		Parameters: []any{Parameter{Name: "If-None-Match", In: "header", Description: "The `ETag` of a copy.", Schema: text()}},
		Answers: map[int]Answer{
			http.StatusOK:          says("This document.", map[string]Schema{mediaJSON: described(object(nil), "A document of OpenAPI.")}, "ETag"),
			http.StatusNotModified: says("The copy is still right.", nil, "ETag"),
		},
	}}}
}
