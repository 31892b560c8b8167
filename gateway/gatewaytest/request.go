package gatewaytest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// Types of content.
const (
	TypeJSON   = "application/json"
	TypeForm   = "application/x-www-form-urlencoded"
	TypeStream = "application/x-ndjson"
)

// NotServed is the status of a reply to a request for a path that the gateway does not have.
const NotServed = http.StatusTeapot

// Reply is a response of the gateway.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// ServeHTTP answers a request as the server would. It answers [NotServed] to any other path.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.Serve(w, environment.With(r, &usual)) {
		w.WriteHeader(NotServed)
	}
}

// Do sends a request.
func (g *Gateway) Do(r *http.Request) Reply {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return Reply{w.Code, w.Header(), w.Body.String()}
}

// Get gets an address as a browser does.
func (g *Gateway) Get(target string) Reply {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", "text/html")
	return g.Do(r)
}

// Post posts a body to an address, and asks for JSON.
func (g *Gateway) Post(target, contentType, body string) Reply {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept", TypeJSON)
	return g.Do(r)
}

// PostForm posts a form, with headers given as names and values.
func (g *Gateway) PostForm(target, form string, header ...string) Reply {
	return g.Do(NewRequest(http.MethodPost, target, form, append([]string{"Content-Type", TypeForm}, header...)...))
}

// NewRequest returns a request that asks for JSON, with headers given as names and values.
func NewRequest(method, target, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Accept", TypeJSON)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return r
}

// Message requests the state of a message, in a type of content.
func (g *Gateway) Message(method, id, accept string) Reply {
	return g.Do(NewRequest(method, "/notify/messages/"+id, "", "Accept", accept))
}

// State returns the state of a message and its first result.
func (g *Gateway) State(id string) (string, message.QueuedResult) {
	g.t.Helper()
	got := g.Message(http.MethodGet, id, TypeJSON)
	if got.Status != http.StatusOK {
		g.t.Fatalf("the message %s: status %d %s", id, got.Status, got.Body)
	}
	a := got.JSON(g.t)
	return a.State, a.Results[0]
}

// Answer is the JSON body of a reply to a message.
type Answer struct {
	ID         string                 `json:"id"`
	IncidentID string                 `json:"incident_id"`
	State      string                 `json:"state"`
	Error      *string                `json:"error"`
	Details    [][3]string            `json:"details"`
	Results    []message.QueuedResult `json:"results"`
}

// JSON decodes the answer to a message that was sent with Accept: application/json.
func (r Reply) JSON(t testing.TB) (a Answer) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), &a); err != nil {
		t.Fatalf("the response is not JSON: %v\n%s", err, r.Body)
	}
	return a
}
