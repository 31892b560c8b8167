package openapi

import "net/http"

// Inbox describes /notify/{KEY}/messages.
func Inbox() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "readInbox", Tag: ofMessages,
		Summary: "Read the messages that a key keeps (a key with inbox)",
		Parameters: []any{
			inQuery("since", bodyOf("Since"), "Where to begin. Default: `all`; on the page `24h`, in the feed `7d`."),
			inQuery("format", text(), "`atom` for an Atom feed, whatever the client accepts."),
		},
		Answers: map[int]Answer{
			http.StatusOK: says("The messages, the oldest first; at most 1000 of them, with at most 4 MiB. A browser gets a page.",
				map[string]Schema{
					mediaJSON: bodyOf("Inbox"),
					mediaHTML: described(text(), "A page with the last 200 of them, the newest first."),
					mediaAtom: described(text(), "An Atom feed (RFC 4287) with the last 200 of them, the newest first."),
				}, "Vary", "Cache-Control"),
			http.StatusBadRequest:         result("`since` is wrong."),
			http.StatusUnauthorized:       unauthorized(noReaderOfKey),
			http.StatusNotFound:           result(noInboxToManage),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}}}
}

// Stream describes /notify/{KEY}/stream.
func Stream() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "followInbox", Tag: ofMessages,
		Summary: "Follow the messages that a key keeps (a key with inbox)",
		Description: "The answer does not end before the client, the gateway or its configuration does; the client then comes back with the " +
			"last `id` as `since`. Every 45 seconds without a message, a line says that the stream is still there. 100 clients can follow a key " +
			"at a gateway.",
		Parameters: []any{inQuery("since", bodyOf("Since"), "Where to begin. Default: `none`, or the header `Last-Event-ID`.")},
		Answers: map[int]Answer{
			http.StatusOK: says("A line of JSON for each message: the schema of a line is `InboxMessage`, with an `event`, which "+
				"is `open`, `message` or `keepalive`. With `Accept: text/event-stream`, server-sent events whose data are messages.",
				map[string]Schema{mediaStream: text(), mediaEvents: text()}, "Vary", "Cache-Control"),
			http.StatusBadRequest:         result("`since` is wrong."),
			http.StatusUnauthorized:       unauthorized(noReaderOfKey),
			http.StatusNotFound:           result(noInboxToManage),
			http.StatusTooManyRequests:    result(tooManyFollow),
			http.StatusServiceUnavailable: result(queueUnreadable),
		},
	}}}
}

// Ntfy describes /notify/{KEY}/ntfy/{TOPICS}/{VERB}.
func Ntfy() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "followInboxAsNtfy", Tag: ofMessages,
		Summary: "Follow the messages that a key keeps with ntfy's clients (a key with inbox)",
		Description: "As ntfy's server answers them (https://docs.ntfy.sh/subscribe/api/): a stream of JSON lines, of server-sent events, of " +
			"texts (`raw`) or over a WebSocket, or whether the client may read. Other methods send a message.",
		Parameters: []any{
			inQuery("poll", text(), "`1` for the messages that are there, instead of a stream."),
			inQuery("since", bodyOf("Since"), "Where to begin. Default: `none`, or `all` with `poll`."),
		},
		Answers: map[int]Answer{
			http.StatusOK: says("The stream or, for `auth`, `{\"success\": true}`.", map[string]Schema{
				mediaStream:         text(),
				"text/event-stream": text(),
				"text/plain":        text(),
				mediaJSON:           object(nil),
			}, "Cache-Control"),
			http.StatusBadRequest: answersJSON("A parameter is wrong, or `ws` without a WebSocket.", bodyOf("NtfyError")),
			http.StatusUnauthorized: answersJSON("The client has no reader of the key and may not manage.", bodyOf("NtfyError")).
				with("WWW-Authenticate"),
			http.StatusForbidden:          answersJSON("A page of another site opens a WebSocket.", bodyOf("NtfyError")),
			http.StatusNotFound:           answersJSON("There is no such key, or it has no inbox.", bodyOf("NtfyError")),
			http.StatusTooManyRequests:    answersJSON(tooManyFollow, bodyOf("NtfyError")),
			http.StatusServiceUnavailable: answersJSON(queueUnreadable, bodyOf("NtfyError")),
		},
	}}}
}
