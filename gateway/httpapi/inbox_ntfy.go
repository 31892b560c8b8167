package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// ntfyReader is one of ntfy's clients.
type ntfyReader struct {
	*InboxReader
	*feed.NtfyRequest
}

// serveNtfyInbox answers a request of one of ntfy's clients for messages. With another method, a
// request sends one.
func (h *Inboxes) serveNtfyInbox(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		to := *at
		to.Source, to.Rest = "ntfy", at.topics+"/"+at.verb
		return h.sources.serveSource(w, r, &to)
	}
	if err := h.doNtfyInbox(w, r, at); err != nil {
		writeNtfyError(w, h.ErrorResponse(r, err))
	}
	return nil
}

func (h *Inboxes) doNtfyInbox(w http.ResponseWriter, r *http.Request, at *Route) error {
	w.Header().Set("Cache-Control", "no-store")
	x, err := h.Reader(r, at.Lookup())
	if err != nil {
		return err
	}
	query := &feed.NtfyParameters{Query: r.URL.Query(), Header: r.Header.Get}
	wanted, err := feed.ParseNtfyRequest(at.topics, query, time.Now(), h.ParseDuration)
	if err != nil {
		return &api.Error{Status: http.StatusBadRequest, Err: err}
	}
	if wanted.Published != "" {
		if wanted.Since.After, err = x.Published(r.Context(), wanted.Published); err != nil {
			return Answer(err)
		}
	}
	n := &ntfyReader{x, wanted}
	switch at.verb {
	case "raw":
		return n.serve(w, r, "text/plain; charset=utf-8", (*feed.NtfyEvent).Raw)
	case "auth":
		return WriteJSON(w, http.StatusOK, map[string]bool{"success": true})
	case "ws":
		return n.websocket(w, r)
	case "sse":
		return n.serve(w, r, "text/event-stream; charset=utf-8", (*feed.NtfyEvent).ServerSent)
	}
	return n.serve(w, r, "application/x-ndjson; charset=utf-8", (*feed.NtfyEvent).Line)
}

// polled calls f with the events for the stored messages.
func (n *ntfyReader) polled(r *http.Request, f func(e *feed.NtfyEvent) error) error {
	var failed error
	err := n.Each(r.Context(), n.Since, func(m *inbox.Message, until time.Time) bool {
		failed = n.Events(inbox.EventMessage, m, until, f)
		return failed == nil
	})
	if err != nil {
		return Answer(err)
	}
	return failed
}

// serve writes the messages that the client asks for, written by encode.
func (n *ntfyReader) serve(w http.ResponseWriter, r *http.Request, contentType string,
	encode func(e *feed.NtfyEvent) ([]byte, error),
) error {
	if !n.Poll {
		return n.streamHTTP(w, r, n.Since, contentType, func(event string, m *inbox.Message, until time.Time) (out []byte, err error) {
			err = n.Events(event, m, until, func(e *feed.NtfyEvent) error {
				data, err := encode(e)
				out = append(out, data...)
				return err
			})
			return out, err
		})
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	written := false
	err := n.polled(r, func(e *feed.NtfyEvent) error {
		data, err := encode(e)
		if err == nil {
			written = true
			_, err = w.Write(data)
		}
		return err
	})
	if err != nil && written {
		panic(http.ErrAbortHandler) // so that the client sees that the list is cut off
	}
	return err
}

// writeNtfyError writes an error in the form for ntfy's clients.
func writeNtfyError(w http.ResponseWriter, resp *api.Response) {
	if resp.Status == http.StatusUnauthorized {
		askForSecret(w, accessReader)
	}
	// JSON can encode these values
	body, _ := json.Marshal(map[string]any{"code": resp.Status*100 + 1, "http": resp.Status, "error": resp.Error})
	resp.WriteAs(w, resp.Status, "application/json", append(body, '\n'))
}
