package gatewaytest

import (
	"net/http"
	"net/http/httptest"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// DoIn sends a request of which the server knows what e says, for example its URL before the
// server removed a prefix. A function that is nil is that of [Gateway.Do].
func (g *Gateway) DoIn(e httpapi.Environment, r *http.Request) Reply {
	if e.User == nil {
		e.User = environment.User
	}
	if e.ClientIP == nil {
		e.ClientIP = environment.ClientIP
	}
	if e.Original == nil {
		e.Original = environment.Original
	}
	w := httptest.NewRecorder()
	if !g.Serve(w, httpapi.WithEnvironment(r, &e)) {
		w.WriteHeader(NotServed)
	}
	return Reply{w.Code, w.Header(), w.Body.String()}
}
