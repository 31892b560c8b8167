package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"
)

// gateway handles requests as the package comment shows, but records messages
// instead of sending them. /notify/k is a key; /notify takes URLs.
type gateway struct {
	t        *testing.T
	limits   message.Limits
	targets  []notifier.Target // of the key, and of requests without URLs
	received []received
}

// received is a message that would be sent.
type received struct {
	title, body, typ string
	incident         string // with the state that does not follow from its type
	files            string // name, type and content of each, separated by |
	urls             string // of the destinations, separated by spaces
}

// newGateway returns a gateway with the default limits, a destination without
// tags, and change applied. It may reach loopback addresses.
func newGateway(t *testing.T, change func(*gateway)) *gateway {
	t.Helper()
	policy, err := egress.NewPolicy([]string{"127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, targets: []notifier.Target{target(t, "json://default")}, limits: message.Limits{
		MaxBody: 8 << 20, MaxFiles: 6, MaxFileSize: 200 << 20, RemoteFiles: true, FetchTimeout: 30 * time.Second, Egress: policy,
	}}
	if change != nil {
		change(g)
	}
	return g
}

func target(t *testing.T, url string, tags ...string) notifier.Target {
	t.Helper()
	d, err := notifier.Parse(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return notifier.Target{Destination: d, Tags: tags}
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := g.handle(w, r)
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			g.t.Errorf("%v is not an error of the client", err)
			e = Errorf(http.StatusInternalServerError, "%w", err)
		}
		resp = e.Response()
	}
	resp.Write(w, r)
}

func (g *gateway) handle(w http.ResponseWriter, r *http.Request) (*Response, error) {
	q, err := Read(w, r, g.limits)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	m, err := q.Message()
	if err != nil {
		return nil, err
	}
	var sel *message.Selection
	if r.URL.Path == "/notify/k" {
		sel, err = q.SelectTags(g.choose)
	} else {
		sel, err = q.SelectURLs(func(url string) (*notifier.Destination, error) { return notifier.Parse(url, g.limits.Egress) }, g.targets)
	}
	if err != nil {
		return nil, err
	}
	if err := sel.Check(m); err != nil {
		return nil, err
	}
	pool := egress.NewPool("test")
	defer pool.Close()
	if m.Attachments, err = q.Attachments(r.Context(), pool); err != nil {
		return nil, err
	}
	got := received{title: m.Title, body: m.Body, typ: string(m.Type)}
	if got.incident = m.Incident.Name; got.incident != "" && m.Incident.State != "" {
		got.incident += " " + string(m.Incident.State)
	}
	for i, a := range m.Attachments {
		content, err := io.ReadAll(a.Open())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			got.files += "|"
		}
		got.files += fmt.Sprintf("%s %s %s", a.Name, a.ContentType, content)
	}
	sent := &notifier.Report{}
	for _, t := range sel.Targets {
		got.urls = strings.TrimSpace(got.urls + " " + t.String())
		sent.Results = append(sent.Results, notifier.Result{Service: t.Service(), Destination: t.String(), Status: notifier.Delivered})
	}
	g.received = append(g.received, got)
	return NewResponse(sel.Report(sent)), nil
}

func (g *gateway) choose(e notifier.TagExpr) (out []notifier.Target, err error) {
	if e.Empty() {
		return g.targets, nil
	}
	for _, t := range g.targets {
		if e.Match(t.Tags) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no destination has the tag")
	}
	return out, nil
}

// take returns and removes the recorded messages.
func (g *gateway) take() []received {
	got := g.received
	g.received = nil
	return got
}

// one returns the only recorded message.
func (g *gateway) one(t *testing.T) received {
	t.Helper()
	got := g.take()
	if len(got) != 1 {
		t.Fatalf("%d messages, want 1: %+v", len(got), got)
	}
	return got[0]
}

// reply is a response of the gateway.
type reply struct {
	status int
	body   string
}

func do(g *gateway, r *http.Request) reply {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return reply{w.Code, w.Body.String()}
}

// post sends a request and asks for JSON.
func post(g *gateway, path, contentType, body string) reply {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Accept", typeJSON)
	return do(g, r)
}
