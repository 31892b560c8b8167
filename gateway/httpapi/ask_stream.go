package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
)

// sources of the site, in addition to the built-in ones
func (h *Messages) streamAnswer(w http.ResponseWriter, r *http.Request, q *ask.Questions, id uuid.UUID) (asks bool, err error) {
	x, err := q.Wait(r.Context(), h.Site(), id, 0, nil)
	if errors.Is(err, ask.ErrNone) {
		return false, nil
	}
	if err != nil {
		return true, Answer(err)
	}
	if x.IsOpen() {
		leave, err := h.enterWaiting(r, x.Place)
		if err != nil {
			return true, err
		}
		defer leave()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	control := http.NewResponseController(w)
	write := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := w.Write([]byte(text))
		return err == nil && control.Flush() == nil
	}
	event := func() (ok bool) {
		data, err := json.Marshal(ask.StateJSON{ID: x.ID.String(), Ask: h.askState(r, x)})
		return err == nil && write("data: "+string(data)+"\n\n")
	}
	for ok := event(); ok && x.IsOpen(); {
		if x, err = q.Wait(r.Context(), h.Site(), id, inbox.KeepaliveInterval, h.streams.Ending); err != nil || r.Context().Err() != nil {
			return true, nil //nolint:nilerr // the client will reconnect
		}
		if !x.IsOpen() {
			event()
			return true, nil
		}
		select {
		case <-h.streams.Ending:
			return true, nil
		default:
			ok = write(": keepalive\n\n")
		}
	}
	return true, nil
}
