package gatewaytest

import (
	"net/http"
	"net/http/httptest"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
)

// DoIn sends a request in an environment e, for example with the URL before the server removed a
// prefix. A nil function has the default of [Gateway.Do].
func (g *Gateway) DoIn(e environment.Environment, r *http.Request) Reply {
	if e.User == nil {
		e.User = usual.User
	}
	if e.ClientIP == nil {
		e.ClientIP = usual.ClientIP
	}
	if e.Original == nil {
		e.Original = usual.Original
	}
	w := httptest.NewRecorder()
	if !g.Serve(w, environment.With(r, &e)) {
		w.WriteHeader(NotServed)
	}
	return Reply{w.Code, w.Header(), w.Body.String()}
}
