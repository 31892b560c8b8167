package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestMoveKey checks the answers of /move/{KEY}, and the records of a move.
func TestMoveKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	var events []string
	g := gatewaytest.New(t, gatewaytest.Options{
		Saved: &saved.Options{Manage: true, MaxKeys: 2}, Storage: storagetest.New(t.TempDir()),
		Site: site.Options{
			Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback(),
			Keys: []site.KeyOptions{gatewaytest.Key("fixed", s.NotifyURL("/"))},
		},
		Emit: func(name string, data map[string]any) {
			events = append(events, fmt.Sprint(name, " ", data["key"], " ", data["change"]))
		},
	})
	for _, name := range []string{"a", "b"} { // as many as can be
		if got := g.PostForm("/add/"+name, "urls="+s.NotifyURL("/"+name)); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
	}
	token := strings.TrimSpace(g.Ask(http.MethodPost, "/cfg/a/token", nil).Body)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(token), &made); err != nil {
		t.Fatal(token, err)
	}
	for _, c := range []struct {
		target, media, body string
		header              []string
		status              int
		field               string
	}{
		{"/move/a", gatewaytest.TypeJSON, `{}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeJSON, `{"to":null}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeJSON, `{"to":5}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeJSON, `["b"]`, nil, 400, ""},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"a b"}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"a"}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"messages"}`, nil, 400, "to"},
		{"/move/a", gatewaytest.TypeForm, "from=b&to=c", nil, 400, "from"},
		{"/move/a", gatewaytest.TypeForm, "to=" + strings.Repeat("x", 9000), nil, 413, ""},
		{"/move/none", gatewaytest.TypeJSON, `{"to":"c"}`, nil, 404, ""},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"b"}`, nil, 409, "to"},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"fixed"}`, nil, 403, "to"},
		{"/move/fixed", gatewaytest.TypeJSON, `{"to":"c"}`, nil, 403, ""},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"c"}`, []string{"Origin", "https://other.example"}, 403, ""},
		{"/move/a", gatewaytest.TypeJSON, `{"to":"c"}`, nil, 200, ""},
		{"/move/b/", gatewaytest.TypeForm, "from=b&to=d", nil, 200, ""},
	} {
		r := gatewaytest.NewRequest(http.MethodPost, c.target, c.body,
			append([]string{"Content-Type", c.media, "Accept", gatewaytest.TypeJSON}, c.header...)...)
		got := g.Do(r)
		var body struct{ Error, Field *string }
		if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
			t.Errorf("%s %s: %s: %v", c.target, c.body, got.Body, err)
			continue
		}
		field := ""
		if body.Field != nil {
			field = *body.Field
		}
		if got.Status != c.status || field != c.field || (body.Error == nil) != (c.status == 200) {
			t.Errorf("%s %s: status %d: %s", c.target, c.body, got.Status, got.Body)
		}
	}
	if got := events[len(events)-2:]; got[0] != "notify_config_changed c moved" || got[1] != "notify_config_changed d moved" {
		t.Errorf("the events are %q", got)
	}
	// The token works only under the new name, and the new name needs it.
	for _, c := range []struct {
		name, token string
		status      int
	}{{"c", made.Token, 200}, {"c", "", 401}, {"a", made.Token, 401}, {"a", "", 401}} {
		if got := g.PostForm("/notify/"+c.name+"?token="+c.token, "body=x"); got.Status != c.status {
			t.Errorf("%+v: status %d: %s", c, got.Status, got.Body)
		}
	}
	if got := s.Paths(); got != "a" {
		t.Errorf("messages arrived at %q", got)
	}
	if got := g.Do(gatewaytest.NewRequest(http.MethodPost, "/get/c", "", "Accept", "text/plain")); got.Body != s.NotifyURL("/a")+"\n" &&
		got.Body != s.NotifyURL("/a") {
		t.Errorf("the text is %q", got.Body)
	}
}

// moveOf moves a key.
func moveOf(t *testing.T, g *gatewaytest.Gateway, from, to string) {
	t.Helper()
	if got := g.PostForm("/move/"+from, "to="+to); got.Status != http.StatusOK {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
}

// TestMoveQueued checks that messages waiting for a key are delivered after it was moved, twice and
// with a restart, that a silence moves along, and that a new key under the old name has none of
// this.
func TestMoveQueued(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusServiceUnavailable), t.TempDir()
	storage := storagetest.New(t.TempDir())
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.Options{
			Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
			Queue: &outbox.Settings{Path: dir}, Saved: &saved.Options{Manage: true}, Storage: storage,
		}
		g := gatewaytest.New(t, o)
		if got := g.PostForm("/add/a", "urls="+p.NotifyURL()); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		id := g.PostForm("/notify/a", "body=waits", "Prefer", "respond-async").JSON(t).ID
		g.AddSilence("a", "title=quiet&for=4h")
		time.Sleep(time.Second)
		moveOf(t, g, "a", "b")
		if got := g.PostForm("/add/a", "urls=json://127.0.0.1:1/new"); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		moveOf(t, g, "b", "c")
		if n, m := len(g.ListSilences("c")), len(g.ListSilences("a")); n != 1 || m != 0 {
			t.Errorf("the moved key has %d silences, the new one %d", n, m)
		}
		g.Stop()
		g = gatewaytest.New(t, o)
		before := p.Count()
		p.Answer(http.StatusOK)
		time.Sleep(3 * time.Hour)
		if state, r := g.State(id); state != "delivered" {
			t.Errorf("%s after %d attempts: %+v", state, r.Attempts, r)
		}
		if p.Count() != before+1 {
			t.Errorf("the destination got %d messages", p.Count()-before)
		}
		if n := len(g.ListSilences("c")); n != 1 {
			t.Errorf("after the restart the moved key has %d silences", n)
		}
	})
}

// TestMoveDevice checks that a phone keeps working after its key was moved: pushes have the new
// name, and its requests under the old name belong to the moved key, even when another key has that
// name.
func TestMoveDevice(t *testing.T) {
	t.Parallel()
	push := gatewaytest.NewPushService(t)
	global := gatewaytest.PushOptions()
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: global, Site: site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
		Queue: &outbox.Settings{}, Saved: &saved.Options{Manage: true}, Storage: storagetest.New(t.TempDir()),
	})
	if got := g.PostForm("/add/a", "urls=json://127.0.0.1:1"); got.Status != http.StatusOK {
		t.Fatal(got.Body)
	}
	k, err := g.Resolved.Key(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	invite, _, err := g.Rooms().Devices.Invitations.Make(t.Context(), g.Devices.DevicePlace(k), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := g.Ask(http.MethodPost, "/notify/a/devices",
		map[string]any{"name": "Phone", "subscription": push.Subscription("/phone"), "invite": invite})
	var phone gatewaytest.Phone
	if err := json.Unmarshal([]byte(got.Body), &phone); err != nil || got.Status != http.StatusCreated {
		t.Fatal(got.Body)
	}
	moveOf(t, g, "a", "b")
	for range 2 { // the second time, another key has the old name
		before := len(push.Got())
		g.PostForm("/notify/b", "body=x")
		gatewaytest.Eventually(t, func() bool { return len(push.Got()) > before })
		payload := push.Got()[before].Payload
		if payload.Key != "b" {
			t.Errorf("the push is of the key %q", payload.Key)
		}
		at := "/notify/a/devices/" + phone.ID
		auth := []string{"Authorization", "Bearer " + phone.Secret}
		for _, c := range []struct {
			method, target string
			body           any
			status         int
		}{
			{http.MethodPost, at + "/receipts", map[string]any{"receipt": payload.Receipt}, 200},
			{http.MethodPost, "/notify/b/devices/" + phone.ID + "/receipts", map[string]any{"receipt": payload.Receipt}, 200},
			{http.MethodGet, at, nil, 200},
			{http.MethodPut, at, map[string]any{"name": "Phone"}, 200},
		} {
			if got := g.Ask(c.method, c.target, c.body, auth...); got.Status != c.status {
				t.Errorf("%s %s: status %d: %s", c.method, c.target, got.Status, got.Body)
			}
		}
		if got := g.Ask(http.MethodPut, at, map[string]any{"name": "Phone"}, "Authorization",
			"Bearer wrong"); got.Status != http.StatusUnauthorized {
			t.Errorf("a wrong secret: status %d", got.Status)
		}
		g.PostForm("/add/a", "urls=json://127.0.0.1:2")
	}
	for name, want := range map[string]int{"a": 0, "b": 1} {
		var list []device.JSON
		got := g.Ask(http.MethodGet, "/notify/"+name+"/devices", nil)
		if err := json.Unmarshal([]byte(got.Body), &list); err != nil || len(list) != want {
			t.Errorf("%s has %s", name, got.Body)
		}
	}
	if got := g.Ask(http.MethodDelete, "/notify/a/devices/"+phone.ID, nil, "Authorization",
		"Bearer "+phone.Secret); got.Status != http.StatusOK {
		t.Errorf("removing the device: %d %s", got.Status, got.Body)
	}
}

// TestMoveTwoGateways checks that another gateway on the same storage knows the new name within
// its refresh, and delivers what it has accepted before.
func TestMoveTwoGateways(t *testing.T) {
	t.Parallel()
	p, storage := gatewaytest.NewPager(t, http.StatusServiceUnavailable), storagetest.New(t.TempDir())
	gatewaytest.InBubble(t, func(t *testing.T) {
		with := func() *gatewaytest.Gateway {
			return gatewaytest.New(t, gatewaytest.Options{
				Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
				Queue: &outbox.Settings{}, Saved: &saved.Options{Manage: true, Refresh: 5 * time.Second}, Storage: storage,
			})
		}
		one, two := with(), with()
		one.PostForm("/add/a", "urls="+p.NotifyURL())
		time.Sleep(6 * time.Second)
		id := two.PostForm("/notify/a", "body=x", "Prefer", "respond-async").JSON(t).ID
		moveOf(t, one, "a", "b")
		time.Sleep(6 * time.Second)
		if got := two.PostForm("/notify/a", "body=old"); got.Status != http.StatusNotFound {
			t.Errorf("the old name: status %d: %s", got.Status, got.Body)
		}
		p.Answer(http.StatusOK)
		if got := two.PostForm("/notify/b", "body=new"); got.Status != http.StatusOK {
			t.Errorf("the new name: status %d: %s", got.Status, got.Body)
		}
		time.Sleep(3 * time.Hour)
		if state, r := two.State(id); state != "delivered" {
			t.Errorf("%s after %d attempts: %+v", state, r.Attempts, r)
		}
	})
}

// TestMoveIncident checks that an incident that is open when its key is moved goes on: it is
// listed under the new name, and the message that resolves it belongs to it.
func TestMoveIncident(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Managers: gatewaytest.Everybody(), Egress: gatewaytest.Loopback()},
			Queue: &outbox.Settings{}, Saved: &saved.Options{
				Manage:      true,
				KeySettings: site.KeySettings{Rules: &rules.Rules{Escalate: &rules.Escalate{}}},
			}, Storage: storagetest.New(t.TempDir()),
		})
		if got := g.PostForm("/add/a", "urls="+p.NotifyURL()); got.Status != http.StatusOK {
			t.Fatal(got.Body)
		}
		list := func(key string) (out []struct{ ID, Key, State string }) {
			var body struct {
				Incidents []struct{ ID, Key, State string }
			}
			got := g.Ask(http.MethodGet, "/notify/incidents?key="+key, nil)
			if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
				t.Fatal(got.Body, err)
			}
			return body.Incidents
		}
		g.PostForm("/notify/a", gatewaytest.AlertForm("failure", "x", "disk"))
		time.Sleep(time.Second)
		before := list("a")
		if len(before) != 1 || before[0].State != "open" {
			t.Fatalf("before the move: %+v", before)
		}
		moveOf(t, g, "a", "b")
		g.PostForm("/add/a", "urls=json://127.0.0.1:1/new")
		if got := list("b"); len(got) != 1 || got[0].Key != "b" || got[0].ID != before[0].ID {
			t.Errorf("after the move: %+v", got)
		}
		g.PostForm("/notify/b", gatewaytest.AlertForm("success", "x", "disk"))
		time.Sleep(time.Second)
		if got := list("b"); len(got) != 1 || got[0].State != "resolved" || got[0].ID != before[0].ID {
			t.Errorf("after the resolution: %+v", got)
		}
		if got := list("a"); len(got) > 0 {
			t.Errorf("the new key has %+v", got)
		}
	})
}
