package httpapi

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

var errAgentsNoToken = api.Errorf(http.StatusForbidden, "agents need a token of the key, and the key has none; the operator can add token <secret> to the key")

// serveMCP answers a request of an agent: /notify/{KEY}/mcp. What its tools do are requests
// to this API.
func (h *API) serveMCP(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	err := at.CheckMethod(w, r)
	if err == nil {
		err = h.mayUseTools(r, at)
	}
	if err != nil {
		return h.Sender.notSent(r, at, err)
	}
	q := r.Clone(r.Context())
	q.Header.Set("Accept", "application/json, text/event-stream") // which the protocol demands of clients, and which changes nothing
	h.agents.ServeHTTP(w, q)
	return nil
}

// mayUseTools returns an error if the client of r is not an agent with a token of the key.
func (h *API) mayUseTools(r *http.Request, at *Route) error {
	if err := h.Resolved.CheckOrigin(r); err != nil {
		return err
	}
	k, err := at.Lookup().toSend(r)
	if err == nil && len(k.Tokens) == 0 {
		err = errAgentsNoToken
	}
	return err
}
