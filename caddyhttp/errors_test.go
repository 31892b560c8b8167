package caddyhttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// request sends a request to the Caddy of a test.
func request(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, caddyhttptest.Server+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Close = true // a kept connection could be one to the Caddy before a reload, which closes it
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// TestErrorsCaddy checks that errors caddy hands answers with an error status to handle_errors, with
// the text without secrets and the headers that tell clients what to do, and leaves others alone.
func TestErrorsCaddy(t *testing.T) {
	s := gatewaytest.NewStation(t)
	const pages = `
	handle_errors 404 {
		root * /nowhere
		respond "page of {err.status_code}: {http.notify.error}"
	}
	handle_errors {
		header X-Key {http.notify.key}
		respond "own page {err.status_code}: {err.message}" {err.status_code}
	}
`
	const keys = `
		key ops {
			url $URL/a
		}
		key door {
			url $URL/b
			token 0123456789abcdef
		}
		key bad {
			url $URL/refuse?+X-Token=s3cret
			url $URL/a
		}
		stateless off
`
	site := func(option string) string {
		return caddyhttptest.Server + ` {
	notify {` + strings.ReplaceAll(keys, "$URL", s.NotifyURL("")) + option + `
	}
	respond next
` + pages + "}\n"
	}
	for option, own := range map[string]bool{"errors caddy": true, "errors notify": false, "": false} {
		caddyhttptest.StartCaddy(t, "", site(option))
		for _, tt := range []struct {
			method, path string
			status       int
			header, want string // of the answer, both for errors caddy and not
			text         string // of the page, for errors caddy
		}{
			{"POST", "/notify/ops", 200, "", "", ""},
			{"GET", "/other", 200, "", "", ""},
			{
				"GET", "/notify/openapi.json/", 404, "Cache-Control", "no-store",
				"page of 404: the address of the API's description has no slash at the end",
			},
			{"POST", "/notify/door", 401, "Www-Authenticate", "Basic", "own page 401: "},
			{"PUT", "/notify/ops", 405, "Allow", "GET, HEAD, POST", "own page 405: the method PUT is not allowed here"},
			{"GET", "/notify/ops", 406, "Cache-Control", "no-store", "own page 406: there is only a page for browsers"},
			{"POST", "/notify/bad", 424, "Cache-Control", "no-store", "own page 424: 1 of 2 notifications could not be sent"},
		} {
			resp, body := request(t, tt.method, tt.path, "body=x", "Content-Type", "application/x-www-form-urlencoded")
			if resp.StatusCode != tt.status || !strings.Contains(strings.Join(resp.Header.Values(tt.header), ","), tt.want) && tt.header != "" {
				t.Errorf("%q: %s %s: %d %v %s", option, tt.method, tt.path, resp.StatusCode, resp.Header, body)
			}
			if isOwn := strings.Contains(body, "page of") || strings.Contains(body, "own page"); isOwn != (own && tt.text != "") ||
				isOwn && !strings.HasPrefix(body, tt.text) || strings.Contains(body, "s3cret") ||
				strings.HasPrefix(body, "next") != (tt.path == "/other") {
				t.Errorf("%q: %s %s: the body is %q", option, tt.method, tt.path, body)
			}
			if key := resp.Header.Get("X-Key"); own && tt.status > 404 && key != strings.TrimPrefix(tt.path, "/notify/") {
				t.Errorf("%s: the key is %q", tt.path, key)
			}
		}
	}
}

// TestErrorsOfAll checks that sites have the setting of the global option, and that it is refused
// where it would make answers empty.
func TestErrorsOfAll(t *testing.T) {
	const key = "key ops {\nurl json://127.0.0.1/a\n}\n"
	load := func(option, site, pages string) error {
		_, err := loadCaddyfile(t, "{\nnotify {\n"+key+option+"\n}\n}\nhttp://:9080 {\nnotify {\n"+key+site+"\n}\n"+pages+"\n}\n")
		return err
	}
	const pages = "handle_errors {\nrespond own\n}"
	for _, tt := range []struct{ option, site, pages, want string }{
		{"errors caddy", "", pages, ""},
		{"", "errors caddy", pages, ""},
		{"errors caddy", "errors notify", "", ""},
		{"", "errors caddy", "", "Caddyfile:14: errors caddy would answer with an empty body, because the server has no handle_errors"},
		{"errors caddy", "", "", "errors caddy would answer with an empty body"},
		{"", "errors on", "", "errors: it must be caddy or notify, at Caddyfile:14"},
	} {
		if err := load(tt.option, tt.site, tt.pages); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %q, %q: %v, want %q", tt.option, tt.site, tt.pages, err, tt.want)
		}
	}
	if _, err := (&Settings{Errors: "on"}).resolve(nil, nil, parseUnshared, nil); err == nil ||
		!strings.Contains(err.Error(), "errors: it must be caddy or notify") {
		t.Errorf("in JSON: %v", err)
	}
}

// TestOutcomePlaceholders checks the placeholders about a message, in a header of the answer.
func TestOutcomePlaceholders(t *testing.T) {
	s := gatewaytest.NewStation(t)
	notify := `notify {
		key ops {
			url ` + s.NotifyURL("/a") + `
			url ` + s.NotifyURL("/b") + `
		}
		key bad {
			url ` + s.NotifyURL("/refuse") + `
			url ` + s.NotifyURL("/a") + `
			queue off
		}
	}
`
	caddyhttptest.StartCaddy(t, "notify {\nqueue {\npath "+t.TempDir()+"\nwait 2s\n}\n}", caddyhttptest.Server+` {
	header >X-Outcome "{http.notify.key} {http.notify.status} {http.notify.delivered} {http.notify.failed} {http.notify.error}"
	header >X-Id "{http.notify.id}"
	`+notify+`
	respond next
}
`)
	for _, tt := range []struct{ method, path, accept, want string }{
		{"POST", "/notify/ops", "*/*", "ops 200 2 0 "},
		{"POST", "/notify/bad", "*/*", "bad 424 1 1 1 of 2 notifications could not be sent"},
		{"POST", "/notify/none", "*/*", "none 404 0 0 there is no such key"},
		{"POST", "/notify/ops/slack", "*/*", "ops 200 2 0 "},
		{"GET", "/notify/ops", "text/html", "ops"},
	} {
		body := "body=x"
		if strings.HasSuffix(tt.path, "slack") {
			body = `payload={"text":"x"}`
		}
		resp, text := request(t, tt.method, tt.path, body, "Content-Type", "application/x-www-form-urlencoded", "Accept", tt.accept)
		if got := resp.Header.Get("X-Outcome"); !strings.HasPrefix(got, strings.TrimSpace(tt.want)) || tt.want == "ops" && got != tt.want {
			t.Errorf("%s %s: %q, want %q: %s", tt.method, tt.path, got, tt.want, text)
		}
		if id, sent := resp.Header.Get("X-Id"), strings.Contains(tt.want, " 2 0 "); (len(id) == 36) != sent {
			t.Errorf("%s %s: the ID is %q", tt.method, tt.path, id)
		}
	}
	if resp, text := request(t, "GET", "/other", ""); text != "next" {
		t.Errorf("another address: %v %s", resp.Header, text)
	}
}

// TestIntercept checks that a handler around the gateway can write a longer body.
func TestIntercept(t *testing.T) {
	s := gatewaytest.NewStation(t)
	long := strings.Repeat("a longer text ", 300)
	caddyhttptest.StartCaddy(t, "", caddyhttptest.Server+` {
	intercept {
		@all status 2xx 4xx
		handle_response @all {
			respond "`+long+`" 200
		}
	}
	notify {
		key ops {
			url `+s.NotifyURL("/a")+`
		}
	}
}
`)
	for _, r := range [][2]string{
		{"POST", "/notify/ops"},
		{"POST", "/notify/none"},
		{"GET", "/notify/status"},
		{"GET", "/notify/openapi.json"},
		{"GET", "/notify/ops"},
		{"POST", "/notify/ops/slack"},
	} {
		if _, body := request(t, r[0], r[1], "body=x", "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"); body != long {
			t.Errorf("%s: %d bytes, not %d: %.100s", r, len(body), len(long), body)
		}
	}
}
