package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestSourceAnswers checks that a source answers 200 if one destination has the message, and
// otherwise 503 if a failure may pass and 424 if not.
func TestSourceAnswers(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	gone := gatewaytest.NewPager(t, http.StatusGone)
	busy := gatewaytest.NewPager(t, http.StatusServiceUnavailable)
	busy.Answer(http.StatusServiceUnavailable, "Retry-After", "90")
	const payload = `{"title":"t","message":"m"}`
	o := site.Options{Egress: gatewaytest.Loopback(), Timeout: time.Second}
	for key, urls := range map[string][]string{
		"both":      {s.NotifyURL("/a"), gone.NotifyURL()},
		"late":      {s.NotifyURL("/refuse") + "?retry=0", s.NotifyURL("/a") + " a"},
		"gone":      {gone.NotifyURL()},
		"temporary": {s.NotifyURL("/refuse")},
		"wants":     {busy.NotifyURL() + "?retry=0", gone.NotifyURL()},
		"optional":  {s.NotifyURL("/refuse") + "?optional=yes"},
	} {
		o.Keys = append(o.Keys, gatewaytest.Key(key, urls...))
	}
	g := gatewaytest.New(t, gatewaytest.Options{Site: o})
	for _, tt := range []struct {
		target, body string
		want         int
		retryAfter   string
		error, text  string // of the error and the whole answer
	}{
		{"/notify/both/proxmox", payload, 200, "", "", `["WARNING",`},
		{"/notify/both/proxmox", payload, 200, "", "", `"1 of 2 notifications could not be sent."`},
		{"/notify/both/proxmox", payload, 200, "", "", `"status":"failed"`},
		{"/notify/both", `{"body":"m"}`, 424, "", "1 of 2 notifications could not be sent", ""},
		{"/notify/late/proxmox", payload, 200, "", "", ""},
		{"/notify/gone/proxmox", payload, 424, "", "1 of 1 notifications could not be sent", ""},
		{"/notify/temporary/proxmox", payload, 503, "30", "1 of 1 notifications could not be sent; send the message again later", ""},
		{"/notify/wants/proxmox", payload, 503, "90", "2 of 2 notifications could not be sent; send the message again later", ""},
		{"/notify/optional/proxmox", payload, 200, "", "", ""},
		{
			"/notify/both/proxmox?tag=none", payload, 424, "",
			"none of the 2 destinations of the key both has the requested tag none, so nothing was sent", "",
		},
		{"/notify/late/proxmox?tag=a", payload, 200, "", "", ""},
		{"/notify/both/proxmox", `{"subject":"x"}`, 400, "", "this is no payload of Proxmox VE and Backup Server", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", gatewaytest.TypeJSON)
		r.Header.Set("Accept", gatewaytest.TypeJSON)
		got := g.Do(r)
		var answer struct{ Error *string }
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil {
			t.Fatal(err)
		}
		text := ""
		if answer.Error != nil {
			text = *answer.Error
		}
		if got.Status != tt.want || got.Header.Get("Retry-After") != tt.retryAfter || !strings.HasPrefix(text, tt.error) ||
			(text == "") != (tt.error == "") || !strings.Contains(got.Body, tt.text) {
			t.Errorf("%s: status %d, Retry-After %q: %s", tt.target, got.Status, got.Header.Get("Retry-After"), got.Body)
		}
	}
	// The failure stands in the history although the answer is a success.
	failed := 0
	for _, e := range g.Process.History.List() {
		if e.Key == "both" && e.Outcome == site.OutcomeFailed {
			failed++
		}
	}
	if failed != 4 {
		t.Errorf("%d messages to the key both failed in the history", failed)
	}
}

// TestAPIOutcomes checks that clients of an API get success if one destination has the
// message, and otherwise 503 or 424 in the format of the API.
func TestAPIOutcomes(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	gone := gatewaytest.NewPager(t, http.StatusGone)
	g := siteWith(t, gatewaytest.Key("both", s.NotifyURL("/a"), gone.NotifyURL()), gatewaytest.Key("gone", gone.NotifyURL()),
		gatewaytest.Key("later", s.NotifyURL("/refuse")+"?retry=0"))
	for _, api := range []struct {
		path, body       string
		success          int
		gone, later, tag string
	}{
		{"slack", `{"text":"x"}`, 200, "1 of 1 notifications could not be sent", "send the message again later", "has the requested tag"},
		{"discord/1/token", `{"content":"x"}`, 204, `"message":"1 of 1`, `"message":"1 of 1`, `"message":"none of`},
		{"gotify/message", `{"message":"x"}`, 200, `"errorCode":424`, `"errorCode":503`, `"errorCode":424`},
		{"ntfy/topic", "x", 200, `"http":424`, `"http":503`, ""}, // its tags are wishes
		{
			"pagerduty/v2/enqueue", `{"event_action":"trigger","dedup_key":"1","payload":{"summary":"x"}}`, 202, `"errors":["1 of 1`,
			`"errors":["1 of 1`, `"errors":["none of`,
		},
		{"opsgenie/v2/alerts", `{"message":"x","alias":"1"}`, 202, `"message":"1 of 1`, `"message":"1 of 1`, `"message":"none of`},
	} {
		for _, tt := range []struct {
			key, query string
			status     int
			text       string
		}{
			{"both", "", api.success, ""},
			{"gone", "", 424, api.gone},
			{"later", "", 503, api.later},
			{"both", "?tag=none", 424, api.tag},
		} {
			if tt.query != "" && api.tag == "" {
				tt.status = api.success
			}
			got := g.Post("/notify/"+tt.key+"/"+api.path+tt.query, gatewaytest.TypeJSON, api.body)
			if got.Status != tt.status || !strings.Contains(got.Body, tt.text) {
				t.Errorf("%s to %s: status %d: %s", api.path, tt.key, got.Status, got.Body)
			}
		}
	}
}

// TestRepeatingProgram checks that a program that sends a message again until the answer
// is a success sends it once if one destination is healthy, with a queue and without one.
func TestRepeatingProgram(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusGone, http.StatusBadGateway} {
		for _, queued := range []bool{false, true} {
			s := gatewaytest.NewStation(t)
			dead := gatewaytest.NewPager(t, status)
			o := gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/a"),
				dead.NotifyURL()+"?retry=0")}}}
			if queued {
				o.Queue = &outbox.Settings{}
			}
			g := gatewaytest.New(t, o)
			const attempts = 5
			for range attempts {
				if got := g.Post("/notify/ops/alertmanager", gatewaytest.TypeJSON, sourceSample(t, "alertmanager/group")); got.Status/100 == 2 {
					break
				}
			}
			if got := s.Take(); len(got) != 1 {
				t.Errorf("a destination that answers %d, queue %v: the healthy one has %d messages", status, queued, len(got))
			}
		}
	}
}

// TestSourceAndFullQueue checks the answer to a program if a failed delivery cannot be
// stored for another attempt: it is still a success if another destination has the
// message.
func TestSourceAndFullQueue(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	later := gatewaytest.NewPager(t, http.StatusBadGateway)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{
			gatewaytest.Key("both", s.NotifyURL("/a"), later.NotifyURL()),
			gatewaytest.Key("later", later.NotifyURL()),
		}},
		Queue: &outbox.Settings{MaxSize: 6000},
	})
	text := strings.Repeat("x", 20<<10)
	for target, want := range map[string]int{"/notify/both/proxmox": 200, "/notify/later/proxmox": 503, "/notify/both": 503} {
		got := g.Post(target, gatewaytest.TypeJSON, `{"body":"`+text+`","message":"`+text+`"}`)
		if got.Status != want || want == 200 && !strings.Contains(got.Body, `"error":null`) || want == 503 &&
			got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d: %.500s", target, got.Status, got.Body)
		}
	}
}

// TestSourceIdempotencyKey checks that a program that repeats a request with the same
// idempotency key gets the same status.
func TestSourceIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	gone := gatewaytest.NewPager(t, http.StatusGone)
	g := gatewaytest.New(t, gatewaytest.Options{
		Queue: &outbox.Settings{},
		Site: site.Options{Keys: []site.KeyOptions{
			gatewaytest.Key("both", s.NotifyURL("/a"), gone.NotifyURL()),
			gatewaytest.Key("gone", gone.NotifyURL()),
		}},
	})
	for target, want := range map[string]int{"/notify/both/proxmox": 200, "/notify/gone/proxmox": 424, "/notify/both": 424} {
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(`{"body":"x","message":"x"}`))
			r.Header = http.Header{"Content-Type": {gatewaytest.TypeJSON}, "Idempotency-Key": {target}}
			if got := g.Do(r); got.Status != want {
				t.Errorf("%s: status %d: %s", target, got.Status, got.Body)
			}
		}
	}
	if got := s.Take(); len(got) != 2 {
		t.Errorf("%d messages have arrived", len(got))
	}
}

// TestRepeatedAlert checks that an alert without a key of its own gets the same one when its
// request is repeated with its idempotency key, and otherwise another one.
func TestRepeatedAlert(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Queue: &outbox.Settings{},
		Site:  site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/a"))}},
	})
	bodies := map[string]bool{}
	for i, key := range []string{"a", "a", "b", "", ""} {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops/pagerduty",
			strings.NewReader(`{"event_action":"trigger","payload":{"summary":"x"}}`))
		r.Header.Set("Content-Type", gatewaytest.TypeJSON)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		got := g.Do(r)
		if got.Status != 202 || bodies[got.Body] != (i == 1) {
			t.Errorf("request %d: status %d: %s", i, got.Status, got.Body)
		}
		bodies[got.Body] = true
	}
	if got := s.Take(); len(got) != 4 {
		t.Errorf("%d messages have arrived", len(got))
	}
}

// TestSourceError checks that a program learns when to repeat a request that may be readable later.
func TestSourceError(t *testing.T) {
	for status, want := range map[int]time.Duration{http.StatusServiceUnavailable: time.Second, http.StatusBadRequest: 0} {
		e, ok := api.ErrorOf(httpapi.SourceError(source.Errorf(status, "no")))
		if !ok || e.Status != status || e.RetryAfter != want {
			t.Errorf("%d: %+v", status, e)
		}
	}
}

// TestConfirmationError checks that a sender asks again for the confirmation of a
// subscription only if that helps.
func TestConfirmationError(t *testing.T) {
	t.Parallel()
	if got := httpapi.ConfirmationError(io.ErrUnexpectedEOF).Status; got != http.StatusServiceUnavailable {
		t.Errorf("after an error of the network: status %d", got)
	}
	if got := httpapi.ConfirmationError(fmt.Errorf("get: %w", &egress.BlockedError{})).Status; got != http.StatusFailedDependency {
		t.Errorf("after a refusal by the egress rules: status %d", got)
	}
}
