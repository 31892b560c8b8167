package httpapi

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/mcp"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/version"
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
	q := r.Clone(context.WithValue(r.Context(), agentKey{}, at.Key))
	q.Header.Set("Accept", "application/json, text/event-stream") // which the protocol demands of clients, and which changes nothing
	h.agents.ServeHTTP(w, q)
	return nil
}

// agentKey is what a context has the name of the key by that an agent uses.
type agentKey struct{}

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

// newAgents returns the handler of the requests of agents.
func (h *API) newAgents() http.Handler {
	path := func(r *http.Request) string {
		name, _ := r.Context().Value(agentKey{}).(string)
		return site.PathOf(site.RouteNotifyKey, name)
	}
	return mcp.NewHandler(version.Current, path, h.doFor)
}

// doFor returns what makes requests to the API for the client of r, with its address and its
// secrets.
func (h *API) doFor(r *http.Request) mcp.Do {
	return func(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte) {
		q := r.Clone(ctx)
		q.Method, q.Proto, q.ProtoMajor, q.ProtoMinor = method, "HTTP/2.0", 2, 0
		q.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
		for _, name := range []string{"Authorization", "X-Gotify-Key", "User-Agent"} { // where clients have tokens, and what says how many gateways a message has passed
			if v, ok := r.Header[name]; ok {
				q.Header[name] = v
			}
		}
		if token := r.URL.Query().Get(tokenQuery); token != "" {
			query = maps.Clone(query)
			if query == nil {
				query = url.Values{}
			}
			query.Set(tokenQuery, token)
		}
		q.URL = &url.URL{Path: path, RawQuery: query.Encode()}
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		w := &agentAnswer{header: http.Header{}, status: http.StatusOK}
		if !h.Serve(w, q) {
			return http.StatusNotFound, nil
		}
		return w.status, w.body.Bytes()
	}
}

// agentAnswer is the answer to a request that is made for an agent.
type agentAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *agentAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *agentAnswer) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *agentAnswer) Write(b []byte) (int, error) { return w.body.Write(b) }
