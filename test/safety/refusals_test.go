package safety

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRefusals checks that a refused request is logged as a warning, listed
// among the recent messages and counted in the metrics, each with its reason.
// The key is named only if it exists. Many refusals for one reason are one line.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := start(t, "", "stateless off\nmax_body 2KiB\nattachments {\nmax_count 0\n}\nkey ops {\nurl json://127.0.0.1:9/ a\n}")
	request := func(method, path, contentType, body string, header ...string) *http.Request {
		r, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	const (
		form   = "application/x-www-form-urlencoded"
		secret = "secretsecret"
	)
	type entry struct {
		Level, Msg, Reason, Server, Error string
		Outcome                           string
		Key                               *string
		Status, Count                     int
		ClientIP                          string `json:"client_ip"`
		Results                           []any
	}
	type want struct {
		key    string
		status int
	}
	wants := map[string]want{}
	for _, tt := range []struct {
		reason, key string
		status      int
		request     func() *http.Request
	}{
		{"unknown_key", "", 404, func() *http.Request { return request("POST", "/notify/"+secret, form, "body=x") }},
		{"stateless_off", "", 403, func() *http.Request { return request("POST", "/notify", form, "body=x&urls=json://u:"+secret+"@h") }},
		{"cross_origin", "ops", 403, func() *http.Request {
			return request("POST", "/notify/ops", form, "body=x", "Origin", "https://evil.example")
		}},
		{"bad_request", "ops", 400, func() *http.Request { return request("POST", "/notify/ops", form, "title=x") }},
		{"too_large", "ops", 413, func() *http.Request {
			return request("POST", "/notify/ops", form, "body="+strings.Repeat("x", 10<<10))
		}},
		{"unsupported_media_type", "ops", 415, func() *http.Request { return request("POST", "/notify/ops", "image/png", "x") }},
		{"no_destination", "ops", 424, func() *http.Request { return request("POST", "/notify/ops", form, "body=x&tag=none") }},
		{"method_not_allowed", "ops", 405, func() *http.Request { return request("PUT", "/notify/ops", form, "body=x") }},
	} {
		for range 3 {
			if got := g.ask(tt.request()); got.Status != tt.status {
				t.Fatalf("%s: status %d, want %d: %s", tt.reason, got.Status, tt.status, got.Body)
			}
		}
		wants[tt.reason] = want{tt.key, tt.status}
	}
	check := func(what string, e entry, count int) {
		key := ""
		if e.Key != nil {
			key = *e.Key
		}
		if w := wants[e.Reason]; e.Status != w.status || key != w.key || e.Count != count ||
			e.ClientIP != "127.0.0.1" || e.Server != "srv0" || e.Error == "" {
			t.Errorf("%s of %s: %+v with the key %q", what, e.Reason, e, key)
		}
	}

	var lines []string
	for line := range bytes.Lines([]byte(g.log())) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Msg != "request refused" {
			continue
		}
		lines = append(lines, string(line))
		if e.Level != "warn" {
			t.Errorf("a refusal has the level %s", e.Level)
		}
		check("the line", e, 1)
	}
	if len(lines) != len(wants) {
		t.Errorf("%d lines, want one for each of %d reasons:\n%s", len(lines), len(wants), strings.Join(lines, ""))
	}

	_, recent := g.get(g.adminURL+"/notify/recent", "*/*")
	var entries []entry
	if err := json.Unmarshal([]byte(recent), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		check("the recent entry", e, 3)
		if e.Outcome != "refused" || e.Results == nil {
			t.Errorf("the recent entry of %s has the outcome %q and the results %v", e.Reason, e.Outcome, e.Results)
		}
	}
	if len(entries) != len(wants) {
		t.Errorf("%d recent entries, want %d: %s", len(entries), len(wants), recent)
	}

	_, metrics := g.get(g.adminURL+"/metrics", "*/*")
	for reason := range wants {
		if line := fmt.Sprintf("\ncaddy_notify_refused_total{reason=%q} 3\n", reason); !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", strings.TrimSpace(line))
		}
	}
	for name, text := range map[string]string{"lines": strings.Join(lines, ""), "recent messages": recent, "metrics": metrics} {
		if strings.Contains(text, secret) {
			t.Errorf("the %s show what only a client knows: %s", name, text)
		}
	}
}
