package caddyhttp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestSourceAnswers checks that a source answers 200 if one destination has the message,
// and otherwise 503 if a failure may pass, and 424 if none does.
func TestSourceAnswers(t *testing.T) {
	replaceShared(t)
	s := gatewaytest.NewStation(t)
	gone := newPager(t, http.StatusGone)
	busy := newPager(t, http.StatusServiceUnavailable)
	busy.header = http.Header{"Retry-After": {"90"}}
	const payload = `{"title":"t","message":"m"}`
	block := open
	for key, urls := range map[string][]string{
		"both":      {s.NotifyURL("/a"), gone.NotifyURL()},
		"late":      {s.NotifyURL("/refuse") + "?retry=0", s.NotifyURL("/a") + " a"},
		"gone":      {gone.NotifyURL()},
		"temporary": {s.NotifyURL("/refuse")},
		"wants":     {busy.NotifyURL() + "?retry=0", gone.NotifyURL()},
		"optional":  {s.NotifyURL("/refuse") + "?optional=yes"},
	} {
		block += "key " + key + " {\n"
		for _, url := range urls {
			block += "url " + url + "\n"
		}
		block += "}\n"
	}
	h := newGateway(t, block+"timeout 1s", "")
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
		{"/notify/both/proxmox?tag=none", payload, 424, "", "none of the 2 destinations of the key both has the requested tag", ""},
		{"/notify/late/proxmox?tag=a", payload, 200, "", "", ""},
		{"/notify/both/proxmox", `{"subject":"x"}`, 400, "", "this is no payload of Proxmox VE and Backup Server", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", typeJSON)
		r.Header.Set("Accept", typeJSON)
		got := do(t, h, r)
		var answer struct{ Error *string }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatal(err)
		}
		text := ""
		if answer.Error != nil {
			text = *answer.Error
		}
		if got.status != tt.want || got.header.Get("Retry-After") != tt.retryAfter || !strings.HasPrefix(text, tt.error) || (text == "") != (tt.error == "") || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d, Retry-After %q: %s", tt.target, got.status, got.header.Get("Retry-After"), got.body)
		}
	}
	// The failure stands in the history although the answer is a success.
	failed := 0
	for _, e := range h.shared.History.List() {
		if e.Key != nil && *e.Key == "both" && e.Outcome == site.OutcomeFailed {
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
	s := gatewaytest.NewStation(t)
	gone := newPager(t, http.StatusGone)
	h := newGateway(t, "key both {\nurl "+s.NotifyURL("/a")+"\nurl "+gone.NotifyURL()+"\n}\nkey gone {\nurl "+gone.NotifyURL()+"\n}\nkey later {\nurl "+s.NotifyURL("/refuse")+"?retry=0\n}", "")
	for _, api := range []struct {
		path, body       string
		success          int
		gone, later, tag string
	}{
		{"slack", `{"text":"x"}`, 200, "1 of 1 notifications could not be sent", "send the message again later", "has the requested tag"},
		{"discord/1/token", `{"content":"x"}`, 204, `"message":"1 of 1`, `"message":"1 of 1`, `"message":"none of`},
		{"gotify/message", `{"message":"x"}`, 200, `"errorCode":424`, `"errorCode":503`, `"errorCode":424`},
		{"ntfy/topic", "x", 200, `"http":424`, `"http":503`, ""}, // its tags are wishes
		{"pagerduty/v2/enqueue", `{"event_action":"trigger","dedup_key":"1","payload":{"summary":"x"}}`, 202, `"errors":["1 of 1`, `"errors":["1 of 1`, `"errors":["none of`},
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
			got := post(t, h, "/notify/"+tt.key+"/"+api.path+tt.query, typeJSON, api.body)
			if got.status != tt.status || !strings.Contains(got.body, tt.text) {
				t.Errorf("%s to %s: status %d: %s", api.path, tt.key, got.status, got.body)
			}
		}
	}
}

// TestRepeatingProgram checks that a program that sends a message again until the answer
// is a success sends it once if one destination is healthy, with a queue and without one.
func TestRepeatingProgram(t *testing.T) {
	for _, status := range []int{http.StatusGone, http.StatusBadGateway} {
		for _, queued := range []bool{false, true} {
			s := gatewaytest.NewStation(t)
			dead := newPager(t, status)
			block := "key ops {\nurl " + s.NotifyURL("/a") + "\nurl " + dead.NotifyURL() + "?retry=0\n}"
			h := newGateway(t, block, "")
			if queued {
				h = newQueueGateway(t, t.TempDir(), block, "")
			}
			const attempts = 5
			for range attempts {
				if got := post(t, h, "/notify/ops/alertmanager", typeJSON, sample(t, "alertmanager/group")); got.status/100 == 2 {
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
	s := gatewaytest.NewStation(t)
	later := newPager(t, http.StatusBadGateway)
	h := newGateway(t, "", "queue {\npath "+t.TempDir()+"\nmax_size 6KB\n}\nkey both {\nurl "+s.NotifyURL("/a")+"\nurl "+later.NotifyURL()+"\n}\nkey later {\nurl "+later.NotifyURL()+"\n}")
	startApp(t, h)
	text := strings.Repeat("x", 20<<10)
	for target, want := range map[string]int{"/notify/both/proxmox": 200, "/notify/later/proxmox": 503, "/notify/both": 503} {
		got := post(t, h, target, typeJSON, `{"body":"`+text+`","message":"`+text+`"}`)
		if got.status != want || want == 200 && !strings.Contains(got.body, `"error":null`) || want == 503 && got.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d: %.500s", target, got.status, got.body)
		}
	}
}

// TestSourceIdempotencyKey checks that a program that repeats a request with the same
// idempotency key gets the same status.
func TestSourceIdempotencyKey(t *testing.T) {
	s := gatewaytest.NewStation(t)
	gone := newPager(t, http.StatusGone)
	h := newQueueGateway(t, t.TempDir(), "key both {\nurl "+s.NotifyURL("/a")+"\nurl "+gone.NotifyURL()+"\n}\nkey gone {\nurl "+gone.NotifyURL()+"\n}", "")
	for target, want := range map[string]int{"/notify/both/proxmox": 200, "/notify/gone/proxmox": 424, "/notify/both": 424} {
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(`{"body":"x","message":"x"}`))
			r.Header = http.Header{"Content-Type": {typeJSON}, "Idempotency-Key": {target}}
			if got := do(t, h, r); got.status != want {
				t.Errorf("%s: status %d: %s", target, got.status, got.body)
			}
		}
	}
	if got := s.Take(); len(got) != 2 {
		t.Errorf("%d messages have arrived", len(got))
	}
}

// TestRepeatedAlert checks that an alert without a key of its own has the same one when its
// request is sent again with its idempotency key, and otherwise another one.
func TestRepeatedAlert(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newQueueGateway(t, t.TempDir(), "key ops {\nurl "+s.NotifyURL("/a")+"\n}", "")
	bodies := map[string]bool{}
	for i, key := range []string{"a", "a", "b", "", ""} {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops/pagerduty", strings.NewReader(`{"event_action":"trigger","payload":{"summary":"x"}}`))
		r.Header.Set("Content-Type", typeJSON)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		got := do(t, h, r)
		if got.status != 202 || bodies[got.body] != (i == 1) {
			t.Errorf("request %d: status %d: %s", i, got.status, got.body)
		}
		bodies[got.body] = true
	}
	if got := s.Take(); len(got) != 4 {
		t.Errorf("%d messages have arrived", len(got))
	}
}

// TestConfirmationError checks that a sender asks again for the confirmation of a
// subscription only if that helps.
func TestConfirmationError(t *testing.T) {
	if got := httpapi.ConfirmationError(io.ErrUnexpectedEOF).Status; got != http.StatusServiceUnavailable {
		t.Errorf("after an error of the network: status %d", got)
	}
	if got := httpapi.ConfirmationError(fmt.Errorf("get: %w", &egress.BlockedError{})).Status; got != http.StatusFailedDependency {
		t.Errorf("after a refusal by the egress rules: status %d", got)
	}
}
