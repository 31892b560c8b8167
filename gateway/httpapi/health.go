package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// statusResponse is the JSON of /notify/status.
type statusResponse struct {
	Status string `json:"status"` // OK or unavailable
	Error  string `json:"error,omitempty"`
}

// serveHealth tells load balancers whether this gateway can accept messages.
func (h *API) serveHealth(w http.ResponseWriter, r *http.Request, _ *Route) *api.Response {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method).Response()
	}
	status, out := http.StatusOK, statusResponse{Status: "OK"}
	if reason := h.App.Unavailable(r.Context()); reason != "" {
		status, out = http.StatusServiceUnavailable, statusResponse{"unavailable", reason}
		w.Header().Set("Retry-After", strconv.Itoa(int(outbox.QueueRetryAfter/time.Second)))
	}
	body, contentType := []byte(out.Status+"\n"), "text/plain; charset=utf-8"
	if out.Error != "" {
		body = []byte(out.Error + "\n")
	}
	if api.PrefersJSON(r) {
		body, _ = json.Marshal(out) // it has only texts
		body, contentType = append(body, '\n'), "application/json"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client is gone
	return nil
}
