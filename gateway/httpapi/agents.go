package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Errors for agents.
var (
	errAgentsNoToken = api.Errorf(http.StatusForbidden,
		"agents need a token of the key, and the key has none; the operator can add token <secret> to the key")
	errAgentsBatch = api.Errorf(http.StatusBadRequest,
		"several calls in one request are not supported, as the protocol says since its version 2025-06-18; "+
			"send each in a request of its own")
)

// serveMCP answers a request of an agent: /notify/{KEY}/mcp. Its tools make requests to this API.
func (h *API) serveMCP(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	err := at.CheckMethod(w, r)
	if err == nil {
		err = h.mayUseTools(r, at)
	}
	if err != nil {
		return h.Sender.notSent(r, at, err)
	}
	e, err := h.Sender.Enter(r, true)
	if err != nil {
		return h.Sender.notSent(r, at, err)
	}
	in := &entered{admission: e}
	defer in.leave()
	q := r.Clone(context.WithValue(r.Context(), enteredKey{}, in))
	q.Header.Set("Accept", "application/json, text/event-stream") // the protocol demands it of clients, and it changes nothing
	if q.Body, err = oneCall(r.Body); err != nil {
		return h.Sender.notSent(r, at, err)
	}
	h.agents.ServeHTTP(w, q)
	return nil
}

// oneCall returns a body, or an error if it has several calls.
func oneCall(body io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReader(body)
	for range maxSpace {
		c, err := b.ReadByte()
		switch {
		case err != nil:
			return nil, api.Errorf(http.StatusBadRequest, "the request has no call; send one as JSON: %w", err)
		case c == '[':
			return nil, errAgentsBatch
		case strings.IndexByte(" \t\r\n", c) < 0:
			return struct {
				io.Reader
				io.Closer
			}{b, body}, b.UnreadByte()
		}
	}
	return nil, errAgentsSpace
}

// maxSpace is how much white space may precede a request, in bytes.
const maxSpace = 1 << 10

var errAgentsSpace = &api.Error{Status: http.StatusBadRequest, Err: errors.New("the request begins with too much white space")}

// entered is an agent's request among the messages under way. It includes the requests of its
// tools.
type entered struct {
	admission site.Admission
	left      atomic.Bool
}

type enteredKey struct{}

// leave counts the request out. It can be called again.
func (e *entered) leave() {
	if e.left.CompareAndSwap(false, true) {
		e.admission.Leave()
	}
}

// hasEntered reports whether r is a part of a request counted among the messages under way.
func hasEntered(r *http.Request) bool {
	e, ok := r.Context().Value(enteredKey{}).(*entered)
	return ok && !e.left.Load()
}

// leaveEntered counts out the request that r is a part of, because it only waits.
func leaveEntered(r *http.Request) {
	if e, ok := r.Context().Value(enteredKey{}).(*entered); ok {
		e.leave()
	}
}

// mayUseTools returns an error if the client of r is not an agent with a token of the key.
func (h *API) mayUseTools(r *http.Request, at *Route) error {
	if err := h.CheckOrigin(r); err != nil {
		return err
	}
	k, err := at.Lookup().toSend(r)
	if err == nil && len(k.Tokens) == 0 {
		err = errAgentsNoToken
	}
	return err
}
