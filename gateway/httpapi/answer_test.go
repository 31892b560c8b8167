package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestAnswerFormats checks responses of success, failure and refusal in each
// format.
func TestAnswerFormats(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("good", s.NotifyURL("/a")+" a"), gatewaytest.Key("bad", s.NotifyURL("/refuse")+" b", s.NotifyURL("/a")))
	const stamp = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`
	for _, tt := range []struct {
		path, accept string
		status       int
		contentType  string
		body         string
	}{
		{"/notify/good", "text/plain", 200, "text/plain; charset=utf-8", `^` + stamp + ` \[INFO\] Sent to JSON 127\.0\.0\.1:\d+ \(a\)\.\n$`},
		{
			"/notify/bad", "text/plain", 424, "text/plain; charset=utf-8",
			`(?m)^` + stamp + ` \[ERROR\] Failed to send to JSON(.|\n)*^` + stamp + ` \[ERROR\] 1 of 2 notifications could not be sent\n$`,
		},
		{
			"/notify/none", "text/plain", 404, "text/plain; charset=utf-8",
			`^` + stamp + ` \[ERROR\] there is no such key; check its name, also upper and lower case\n$`,
		},
		{
			"/notify/good", "text/html", 200, "text/html; charset=utf-8",
			`(?s)<title>Sent</title>.*<ul class="logs">\n` +
				`<li class="log_INFO"><div class="log_time"><time datetime="[^"]+">\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC</time>` +
				`</div><div class="log_level">INFO</div><div class="log_msg">Sent to JSON 127\.0\.0\.1:\d+ \(a\)\.</div></li>\n</ul>`,
		},
		{
			"/notify/bad", "text/html", 424, "text/html; charset=utf-8",
			`(?s)<title>Not sent to all</title>.*<li class="log_ERROR">.*1 of 2 notifications could not be sent</div>`,
		},
		{
			"/notify/none", "text/html", 404, "text/html; charset=utf-8",
			`(?s)<title>Not sent</title>.*<li class="log_ERROR">.*there is no such key; check its name, also upper and lower case</div>`,
		},
		{
			"/notify/good", "application/json", 200, "application/json",
			`^\{"error":null,"details":\[\["INFO","` + stamp +
				`","Sent to JSON 127\.0\.0\.1:\d+ \(a\)\."\]\],"results":\[\{"service":"JSON","destination":"json://127\.0\.0\.1:\d+/a",` +
				`"name":"JSON 127\.0\.0\.1:\d+ \(a\)","tags":\["a"\],"status":"delivered","attempts":1,"elapsed_ms":\d+,"error":null\}\]\}\n$`,
		},
		{
			"/notify/bad", "application/json", 424, "application/json",
			`^\{"error":"1 of 2 notifications could not be ` +
				`sent","details":\[\[.*"results":\[\{"service":"JSON".*"tags":\["b"\],"status":"failed","attempts":1,"elapsed_ms":\d+,` +
				`"error":".*500.*"\},\{.*"tags":\[\],"status":"delivered"`,
		},
		{
			"/notify/none", "application/json", 404, "application/json",
			`^\{"error":"there is no such key; check its name, also upper and lower case",` +
				`"details":\[\],"results":\[\]\}\n$`,
		},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader("body=x"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("Accept", tt.accept)
		got := g.Do(r)
		if got.Status != tt.status {
			t.Errorf("%s %s: status %d, want %d", tt.path, tt.accept, got.Status, tt.status)
		}
		if !regexp.MustCompile(tt.body).MatchString(got.Body) {
			t.Errorf("%s %s: the answer is not like %s\n%s", tt.path, tt.accept, tt.body, got.Body)
		}
		for name, want := range map[string]string{
			"Content-Type": tt.contentType, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Vary": "Accept",
		} {
			if v := got.Header.Get(name); v != want {
				t.Errorf("%s %s: %s is %q, want %q", tt.path, tt.accept, name, v, want)
			}
		}
	}
}

// TestFormatForJSONRequests checks the answers to programs that send JSON: without
// an Accept header an error is JSON, and with */* everything is.
func TestFormatForJSONRequests(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("good", s.NotifyURL("/a")), gatewaytest.Key("bad", s.NotifyURL("/refuse")))
	for _, tt := range []struct {
		path, requestType, body string
		accept                  []string
		status                  int
		contentType             string
	}{
		{"/notify/none", gatewaytest.TypeJSON, `{"body":"x"}`, nil, 404, "application/json"},
		{"/notify/bad", gatewaytest.TypeJSON + "; charset=utf-8", `{"body":"x"}`, nil, 424, "application/json"},
		{"/notify/good", gatewaytest.TypeJSON, `{"body":`, nil, 400, "application/json"},
		{"/notify/good", gatewaytest.TypeJSON, `{"body":"x"}`, nil, 200, "text/plain; charset=utf-8"},
		{"/notify/none", gatewaytest.TypeJSON, `{"body":"x"}`, []string{""}, 404, "application/json"},
		{"/notify/none", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"*/*"}, 404, "application/json"},
		{"/notify/bad", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"*/*"}, 424, "application/json"},
		{"/notify/good", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"*/*"}, 200, "application/json"},
		{"/notify/good", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"text/plain"}, 200, "text/plain; charset=utf-8"},
		{"/notify/none", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"text/plain"}, 404, "text/plain; charset=utf-8"},
		{"/notify/good", gatewaytest.TypeForm, "body=x", []string{"*/*"}, 200, "text/plain; charset=utf-8"},
		{"/notify/none", gatewaytest.TypeJSON, `{"body":"x"}`, []string{"text/html"}, 404, "text/html; charset=utf-8"},
		{"/notify/none", gatewaytest.TypeForm, "body=x", nil, 404, "text/plain; charset=utf-8"},
	} {
		r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.requestType)
		r.Header["Accept"] = tt.accept
		if tt.accept == nil {
			delete(r.Header, "Accept")
		}
		got := g.Do(r)
		if got.Status != tt.status || got.Header.Get("Content-Type") != tt.contentType {
			t.Errorf("%s %s, Accept %q: status %d, %s; want %d, %s", tt.path, tt.requestType, tt.accept, got.Status, got.Header.Get("Content-Type"),
				tt.status, tt.contentType)
		}
	}
}

func TestUnusableURLInAnswer(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Egress: gatewaytest.Loopback()}})
	got := g.Post("/notify", gatewaytest.TypeJSON, `{"body":"x","urls":["nonsense://h/secretsecret","`+s.NotifyURL("/a")+
		`","discord://secretsecret"]}`).JSON(t)
	if got.Error == nil || *got.Error != "2 of 3 notifications could not be sent" {
		t.Errorf("error: %v", got.Error)
	}
	var seen []string
	for _, r := range got.Results {
		seen = append(seen, r.Destination+" "+string(r.Status))
		if (r.Error == nil) != (r.Status == notifier.Delivered) {
			t.Errorf("%s: error %v", r.Destination, r.Error)
		}
		if r.Error != nil && strings.Contains(*r.Error, "secret") {
			t.Errorf("the error shows the URL: %s", *r.Error)
		}
	}
	want := []string{" skipped", strings.TrimSuffix(s.NotifyURL("/a"), "/") + " delivered", "discord:// skipped"}
	if strings.Join(seen, "|") != strings.Join(want, "|") {
		t.Errorf("results %q, want %q", seen, want)
	}
	if len(got.Details) != 3 {
		t.Errorf("%d details, want one a URL", len(got.Details))
	}
}

// TestWarningsInAnswer checks that the response warns about parts of a URL without effect.
func TestWarningsInAnswer(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Egress: gatewaytest.Loopback()}})
	got := g.Post("/notify", gatewaytest.TypeJSON, `{"body":"x","urls":["`+s.NotifyURL("/a?nonsense=1")+`"]}`).JSON(t)
	if got.Error != nil || len(got.Details) != 2 || got.Details[0][0] != "WARNING" || !strings.HasPrefix(got.Details[0][2], "URL 1 of 1: ") {
		t.Errorf("%+v", got)
	}
}
