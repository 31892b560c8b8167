package ask_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// options returns the options of a gateway whose queue is in a folder.
func options(dir string, keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{
		Global: site.Options{Keys: keys, PublicURL: gatewaytest.PublicURL, Egress: gatewaytest.Loopback()},
		Site:   site.Options{Page: new(true), Stateless: new(true)},
		Queue:  &outbox.Settings{Path: dir},
	}
}

// deploy is the field ask of most tests.
const deploy = `{"options":["deploy","wait"],"timeout":"10m","default":"wait"}`

// post sends a message with the field ask to the key k.
func post(g *gatewaytest.Gateway, ask string, header ...string) gatewaytest.Reply {
	body := `{"title":"Deploy 1.4?","body":"It **adds** a column.","format":"markdown","ask":` + ask + `}`
	return g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/k", body,
		append([]string{"Content-Type", gatewaytest.TypeJSON}, header...)...))
}

// ask asks a question, and returns the ID of its message.
func ask(t *testing.T, g *gatewaytest.Gateway, ask string) string {
	t.Helper()
	got := post(g, ask)
	a := got.JSON(t)
	if got.Status != http.StatusAccepted || a.ID == "" || got.Header.Get("Location") != "/notify/messages/"+a.ID {
		t.Fatalf("status %d, Location %q: %s", got.Status, got.Header.Get("Location"), got.Body)
	}
	return a.ID
}

// state returns what a client sees of a question.
func state(t *testing.T, g *gatewaytest.Gateway, id, query string, header ...string) *message.AskState {
	t.Helper()
	got := g.Do(gatewaytest.NewRequest(http.MethodGet, "/notify/messages/"+id+query, "", header...))
	var m struct {
		Ask *message.AskState `json:"ask"`
	}
	if err := json.Unmarshal([]byte(got.Body), &m); err != nil || got.Status != http.StatusOK || m.Ask == nil {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	return m.Ask
}

// said describes a state in a word or some.
func said(s *message.AskState) string {
	out := s.State
	if s.Answer != nil {
		out += " " + *s.Answer
	}
	if s.By != "" {
		out += " by " + s.By
	}
	return out
}

// linkOf returns the path of the link to a question that the i-th message to a pager has.
func linkOf(t *testing.T, p *gatewaytest.Pager, i int) string {
	t.Helper()
	got := p.Got()
	if len(got) <= i {
		t.Fatalf("%d messages have arrived", len(got))
	}
	path, ok := strings.CutPrefix(got[i].AnswerURL, gatewaytest.PublicURL)
	if !ok {
		t.Fatalf("the link is %q", got[i].AnswerURL)
	}
	return path
}

// answer answers a question at its link.
func answer(g *gatewaytest.Gateway, link, form string) gatewaytest.Reply {
	return g.PostForm(link, form)
}

// wantAnswered answers, and checks the reply.
func wantAnswered(t *testing.T, g *gatewaytest.Gateway, link, form string, status int, want string) {
	t.Helper()
	got := answer(g, link, form)
	var s message.AskState
	if err := json.Unmarshal([]byte(got.Body), &s); err != nil || got.Status != status || said(&s) != want {
		t.Errorf("%s: status %d %s, want %d %s", form, got.Status, got.Body, status, want)
	}
}

// page returns the page at a link.
func page(g *gatewaytest.Gateway, link string) string { return g.Get(link).Body }

// settle waits until the queue has done what is due.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func asUser(method, target, form, user string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Accept", gatewaytest.TypeJSON)
	return gatewaytest.As(r, user)
}

var escalate = rules.Rules{Escalate: &rules.Escalate{After: []time.Duration{5 * time.Minute, 5 * time.Minute}, Repeat: 1, Ack: time.Hour}}
