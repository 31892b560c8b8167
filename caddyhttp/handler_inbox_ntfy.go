package caddyhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
)

// ntfyRequest is a request of one of ntfy's clients for the messages of topics. Each topic
// has all messages of the key.
type ntfyRequest struct {
	*inboxReader
	topics []string
	poll   bool
	since  inbox.Since
	filter inbox.NtfyFilter
}

// serveNtfyInbox answers a request of one of ntfy's clients for messages. Other methods
// send one.
func (h *Handler) serveNtfyInbox(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		to := *at
		to.source, to.rest = "ntfy", at.topics+"/"+at.verb
		return h.serveSource(w, r, &to)
	}
	if err := h.doNtfyInbox(w, r, at); err != nil {
		writeNtfyError(w, h.errorResponse(err))
	}
	return nil
}

func (h *Handler) doNtfyInbox(w http.ResponseWriter, r *http.Request, at *route) error {
	w.Header().Set("Cache-Control", "no-store")
	x, err := h.inboxReader(r, at.key)
	if err != nil {
		return err
	}
	n, err := x.ntfyRequest(r, at.topics)
	if err != nil {
		return err
	}
	switch at.verb {
	case "auth":
		return writeJSON(w, http.StatusOK, map[string]bool{"success": true})
	case "ws":
		return n.websocket(w, r)
	case "sse":
		return n.serve(w, r, "text/event-stream; charset=utf-8", func(e *inbox.NtfyEvent) ([]byte, error) {
			data, err := ntfyLine(e)
			event := ""
			if e.Event != inbox.EventMessage {
				event = "event: " + e.Event + "\n"
			}
			return append([]byte(event+"data: "), append(data, '\n')...), err
		})
	}
	return n.serve(w, r, "application/x-ndjson; charset=utf-8", ntfyLine)
}

// ntfyLine returns an event as a line of JSON.
func ntfyLine(e *inbox.NtfyEvent) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(e)
	return b.Bytes(), err
}

// ntfyRequest returns what one of ntfy's clients asks for. Its parameters are in the query
// or in headers.
func (x *inboxReader) ntfyRequest(r *http.Request, topics string) (*ntfyRequest, error) {
	query := map[string]string{}
	for name, values := range r.URL.Query() {
		if len(values) > 0 {
			query[strings.ToLower(name)] = values[0]
		}
	}
	get := func(names ...string) string {
		for _, name := range names {
			for _, value := range []string{query["x-"+name], query[name], r.Header.Get("X-" + name)} {
				if value = strings.TrimSpace(value); value != "" {
					return value
				}
			}
		}
		// Names without X- are those of headers of HTTP, too; only these two are ntfy's.
		switch names[0] {
		case "since", "poll":
			return strings.TrimSpace(r.Header.Get(names[0]))
		}
		return ""
	}
	n := &ntfyRequest{inboxReader: x}
	var ok bool
	if n.topics, ok = inbox.ParseTopics(topics); !ok {
		return nil, api.Errorf(http.StatusBadRequest, "a topic has 1 to 64 letters, digits, - and _, and an address has at most 20 topics")
	}
	switch strings.ToLower(get("poll", "po")) {
	case "1", "true", "yes":
		n.poll = true
	}
	var err error
	since := get("since", "si")
	if n.since, err = x.since(since, inbox.Since{None: !n.poll}); err != nil {
		if !isNtfyID(since) {
			return nil, err
		}
		n.since = inbox.Since{} // the ID is that of another server: as ntfy does, all
	}
	if n.filter, ok = inbox.ParseNtfyFilter(get); !ok {
		return nil, api.Errorf(http.StatusBadRequest, "a priority is a number from 1 to 5, or min, low, default, high, max or urgent")
	}
	return n, nil
}

// isNtfyID reports whether a text has the form of the ID of a message of ntfy.
func isNtfyID(text string) bool {
	const length = 12
	return len(text) == length && isKeyName(text)
}

// events calls f with the events for a message, or for a stream.
func (n *ntfyRequest) events(event string, m *inbox.Message, until time.Time, f func(e *inbox.NtfyEvent) error) error {
	if m == nil {
		e := inbox.NewNtfyEvent(event, strings.Join(n.topics, ","), time.Now())
		return f(&e)
	}
	for _, topic := range n.topics {
		if e := m.Ntfy(topic, until); n.filter.Selects(&e) {
			if err := f(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// polled calls f with the events for the messages that are there.
func (n *ntfyRequest) polled(r *http.Request, f func(e *inbox.NtfyEvent) error) error {
	var failed error
	err := n.Each(r.Context(), n.since, func(m *inbox.Message, until time.Time) bool {
		failed = n.events(inbox.EventMessage, m, until, f)
		return failed == nil
	})
	if err != nil {
		return errInboxUnavailable(err)
	}
	return failed
}

// serve writes the messages that the client wants, as encode writes them.
func (n *ntfyRequest) serve(w http.ResponseWriter, r *http.Request, contentType string, encode func(e *inbox.NtfyEvent) ([]byte, error)) error {
	if !n.poll {
		return n.streamHTTP(w, r, n.since, contentType, func(event string, m *inbox.Message, until time.Time) (out []byte, err error) {
			err = n.events(event, m, until, func(e *inbox.NtfyEvent) error {
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
	err := n.polled(r, func(e *inbox.NtfyEvent) error {
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

// writeNtfyError writes an error as ntfy's clients read it.
func writeNtfyError(w http.ResponseWriter, resp *api.Response) {
	if resp.Status == http.StatusUnauthorized {
		askForSecret(w, accessReader)
	}
	w.Header().Del("Content-Type")
	_ = writeJSON(w, resp.Status, map[string]any{"code": resp.Status*100 + 1, "http": resp.Status, "error": resp.Error}) // these values have JSON
}
