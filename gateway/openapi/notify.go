package openapi

import (
	"maps"
	"net/http"
)

// Notify describes /notify.
func Notify() About {
	return About{Operations: []Operation{{
		Method: http.MethodPost, ID: "notify", Tag: ofMessages,
		Summary: "Send a message to the URLs in the request",
		Description: "Sends to the URLs in `urls` or, if there are none, to the key that `X-Apprise-Config-ID` names, or to the gateway's " +
			"default URLs.",
		Parameters: common("TitleQuery", "TypeQuery", "FormatQuery", "IncidentQuery", "Mapping", "TitleHeader", "IncidentHeader",
			"PriorityHeader", "Preview", "Stream", "Accept", "RecursionCount", "ConfigID", "Prefer", "IdempotencyKey"),
		Body: &Body{Ref: "MessageBody"},
		Answers: ofMessage(map[int]Answer{
			http.StatusUnauthorized: unauthorized("`X-Apprise-Config-ID` names a key whose token is missing, or which has none, and " +
				"`config_id` is off; or there is no such key."),
			http.StatusForbidden: result("A page of another site has sent the request (`trusted_origins`), messages without a key are " +
				"turned off, or `X-Apprise-Config-ID` names no key without a token here."),
			http.StatusNotFound: result("There is no key that `X-Apprise-Config-ID` names."),
			http.StatusFailedDependency: undelivered("A required destination has not accepted the message, or a URL could not be used; the " +
				"message was sent to the others. Or no destination of the key has the tag, and nothing was sent. An answer as " +
				"`application/x-ndjson` has the HTTP status 200 once sending has begun, and 424 in its last line."),
		}),
	}, {
		Method: http.MethodGet, ID: "getPage", Tag: ofPage,
		Summary: "A page to write a message on",
		Description: "For browsers, that is, requests whose `Accept` header prefers `text/html`. `HEAD` works, too. `page off` turns it off. " +
			"With `stateless off`, the page says what this is, and who may use the console is sent there.",
		Answers: map[int]Answer{
			http.StatusOK:               aPage(),
			http.StatusMethodNotAllowed: noPage(),
			http.StatusNotAcceptable:    notHTML(),
		},
	}}}
}

// Key describes /notify/{KEY}.
func Key() About {
	return About{Operations: []Operation{{
		Method: http.MethodPost, ID: "notifyKey", Tag: ofMessages,
		Summary: "Send a message to the destinations of a key",
		Parameters: common("TitleQuery", "TypeQuery", "FormatQuery", "IncidentQuery", "SendAtQuery", "TagQuery", "TagsQuery",
			"Mapping", "TitleHeader", "IncidentHeader", "PriorityHeader", "TagsHeader", "Beat", "BeatState", "BeatExit",
			"Preview", "Stream", "Accept", "RecursionCount", "Prefer", "IdempotencyKey"),
		Body: &Body{Ref: "MessageBody"},
		Answers: ofMessage(map[int]Answer{
			http.StatusUnauthorized: unauthorized(needsToken),
			http.StatusForbidden:    result("A page of another site has sent the request (`trusted_origins`)."),
			http.StatusNotFound:     result(noSuchKey),
			http.StatusAccepted: says("Deliveries are `queued`, and the client prefers not to wait for them, or the message asks. "+
				"`Location` has the address of the message.", recordsOr(bodyOf("Answer"), bodyOf("UnsentLine")),
				"Vary", "Cache-Control", "Location", "X-Message-Id"),
			http.StatusTooManyRequests: result("The key has 1,000 planned messages, or 100 open questions, already."),
			http.StatusConflict:        result("The message asks, and a silence covers all destinations; nobody was asked."),
			http.StatusFailedDependency: unsent("A required destination has not accepted the message, or a URL could not be used; the message was " +
				"sent to the others. Or no destination of the key has the tag, and nothing was sent. An answer as `application/x-ndjson` has the " +
				"HTTP status 200 once sending has begun, and 424 in its last line."),
		}),
	}, {
		Method: http.MethodGet, ID: "getPageOfKey", Tag: ofPage,
		Summary: "A page to write a message on",
		Description: "For browsers, that is, requests whose `Accept` header prefers `text/html`. `HEAD` works, too. `page off` turns it off. " +
			"With `beat`, a request of any client is a beat, and the answer is that of `POST`; one from a page of another origin is refused.",
		Parameters: common("Beat", "BeatState", "BeatExit", "TypeQuery"),
		Answers: map[int]Answer{
			http.StatusOK:               aPage(),
			http.StatusUnauthorized:     says(needsToken, map[string]Schema{mediaHTML: bodyOf("Page")}, "Vary", "Cache-Control", "WWW-Authenticate"),
			http.StatusNotFound:         says(noSuchKey, map[string]Schema{mediaHTML: bodyOf("Page")}),
			http.StatusMethodNotAllowed: noPage(),
			http.StatusNotAcceptable:    notHTML(),
		},
	}}}
}

// Source describes /notify/{KEY}/{SOURCE}.
func Source() About {
	return About{Operations: []Operation{{
		Method: http.MethodPost, ID: "notifyFromSource", Tag: ofMessages,
		Summary: "Send a message in the format of another program",
		Description: "The source makes the message from the payload. It is built in, such as `alertmanager`, `grafana` or `slack`, or defined " +
			"in the configuration. Clients of the APIs `slack`, `discord`, `ntfy`, `gotify`, `pagerduty` and `opsgenie` get answers in the " +
			"formats of these APIs, which have further paths and methods.",
		Parameters: common("TitleQuery", "TypeQuery", "FormatQuery", "IncidentQuery", "TagQuery", "TagsQuery", "Stream", "Accept",
			"RecursionCount", "Prefer", "IdempotencyKey"),
		Body: &Body{Required: true, Description: "A payload as the program sends it.", Content: map[string]Media{"*/*": {}}},
		Answers: ofSending(map[int]Answer{
			http.StatusOK: result("At least one destination has accepted the message, or the payload needs no message. " +
				"`results` shows which destinations have failed. The sender need not send the message again.").streamed(),
			http.StatusBadRequest: result("The request is wrong: its syntax, a field, a type, a tag or an attachment; or the payload " +
				"is one of another program, and the text says of which."),
			http.StatusUnauthorized: unauthorized("The signature or the token that the source demands, or else a token of the key, is " +
				"missing or wrong. If one of the keys has a token, also for a key that does not exist."),
			http.StatusForbidden:            result("A page of another site has sent the request, or the key does not accept the source."),
			http.StatusNotFound:             result("There is no such key or no such source."),
			http.StatusUnsupportedMediaType: result("The body is compressed."),
			http.StatusFailedDependency: unsent("No destination has accepted the message, and sending it again does not help. Or no " +
				"destination of the key has the tag, and nothing was sent. An answer as `application/x-ndjson` has the HTTP status 200 once sending " +
				"has begun, and 424 in its last line."),
			http.StatusServiceUnavailable: tryAgain("No destination has accepted the message, but may when it is sent again. Or too many " +
				"messages are under way (in all, with URLs of clients, or from one client), or there is no memory left for a long text. Nothing was " +
				"sent, and the text names the limit. Or a delivery has failed for now and the queue is full or cannot be written; then `results` " +
				"shows what was sent."),
		}),
	}}}
}

// ofSending adds the answers that every message can get.
func ofSending(own map[int]Answer) map[int]Answer {
	for status, a := range map[int]Answer{
		http.StatusAccepted: says("The gateway has stored the message and sends it later. The client has sent `Prefer`.",
			recordsOr(bodyOf("Answer"), nil), "Vary", "Cache-Control", "Location", "X-Message-Id", "Preference-Applied").called("Stored"),
		http.StatusRequestTimeout:        result("The request took longer to arrive than the server allows."),
		http.StatusRequestEntityTooLarge: result("The request, or a file in it, is too large."),
		http.StatusUnprocessableEntity:   result("The `Idempotency-Key` was used for a different request."),
		http.StatusInternalServerError:   result("A fault of the gateway. Its log has the reason."),
		http.StatusInsufficientStorage:   result("The gateway has no disk space left for an attachment. Nothing was sent."),
		http.StatusLoopDetected:          result("The message has passed through too many gateways (`X-Apprise-Recursion-Count`)."),
	} {
		if _, other := own[status]; !other {
			own[status] = a
		}
	}
	return own
}

// ofMessage adds the answers that a message in the gateway's own format can get.
func ofMessage(own map[int]Answer) map[int]Answer {
	maps.Copy(own, map[int]Answer{
		http.StatusOK: result("Every required destination has accepted the message, or the gateway has stored it and sends " +
			"it later. Then the results of some destinations are `queued`, or that of the key is, for a message with `send_at`. With a queue, " +
			"the headers `Location` and `X-Message-Id` have the address and the ID of the message, also where the status is 424.").streamed(),
		http.StatusBadRequest: result("The request is wrong: its syntax, a field, a type, a tag, a mapping or an attachment; or " +
			"there is nothing to send, or no usable URL to send to."),
		http.StatusUnsupportedMediaType: result("The body is neither JSON nor a form, or it is compressed."),
		http.StatusServiceUnavailable: tryAgain("Too many messages are under way (in all, with URLs of clients, or from one client), or there " +
			"is no memory left for a long text. Nothing was sent, and the text names the limit. Or a delivery has failed for now and the queue " +
			"is full or cannot be written; then `results` shows what was sent."),
	})
	return ofSending(own)
}

// Texts that several operations share.
const (
	keyThatIsSaved = "The name of a saved key. Upper and lower case differ."

	noSuchKey       = "There is no such key."
	queueUnusable   = "The queue cannot be read or written at the moment."
	queueUnreadable = "The queue cannot be read at the moment."
	queueUnwritable = "The queue cannot be written at the moment."
	storageUnusable = "The storage of saved keys cannot be read or written; try again after `Retry-After`."
	savedForbidden  = "Saved keys cannot be managed here or by this client, the key is in the gateway's configuration, " +
		"or a page of another site sent the request."
	silenceForbidden = "The client may not manage, its page belongs to another site, or there is no queue for the key. " +
		"The error says which."
	notOwnDevice    = "The device is unknown, or the secret is not its own."
	foreignPage     = "A page of another site sent the request."
	noReaderOfKey   = "The client has no reader of the key and may not manage. Keys that do not exist or have no inbox are answered alike."
	noInboxToManage = "There is no such key, or it has no inbox. Only those who may manage get this answer."
	tooManyFollow   = "100 clients follow the key already, or 250 requests and streams from the address of the client wait, " +
		"or 500 for the key; try again after `Retry-After`."
	noSuchMessage      = "There is no such message, or its results are no longer kept."
	noSuchIncident     = "There is no such incident, or it was opened anew with another ID."
	silenceEnded       = "There is no such key, or the silence has ended."
	deviceBodyTooLarge = "The body has more than 8 KiB."
	notJSON            = "The body is not JSON."
)
