package caddyhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
)

// earlyConn is a connection to the site of a test.
type earlyConn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// dialEarly dials again if the connection is reset: a reload does so with those that the old
// server has not accepted yet.
func dialEarly(t *testing.T) *earlyConn {
	t.Helper()
	var c net.Conn
	var err error
	for range 20 {
		if c, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", caddyhttptest.Site); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &earlyConn{t, c, bufio.NewReader(c)}
}

// send sends the lines of a request, and no body.
func (c *earlyConn) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c, strings.Join(append(lines, "Host: "+caddyhttptest.Site), "\r\n")+"\r\n\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// answer returns the answer, for which nothing else has to be sent.
func (c *earlyConn) answer(request string) (*http.Response, string, error) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// TestAnswersEarly checks that what is refused without its body is answered before the body
// arrives. net/http waited for it, so that a client that sent none got its 401 when a
// timeout of the server passed.
func TestAnswersEarly(t *testing.T) {
	const (
		form   = "Content-Type: application/x-www-form-urlencoded"
		object = "Content-Type: application/json"
		parts  = "Content-Type: multipart/form-data; boundary=x"
	)
	type refusal struct {
		request, header string
		want            int
	}
	all := []refusal{
		{"POST /notify/ops", form, 401},
		{"POST /notify/ops", object, 401},
		{"POST /notify/ops/grafana", object, 401},
		{"POST /notify/ops/ntfy/t", form, 401},
		{"POST /notify/none", form, 401}, // like one with a token
		{"POST /notify/ops?beat=x", form, 401},
		{"POST /notify/ops?preview", form, 401},
		{"DELETE /notify/inb/devices/x", object, 401},
		{"GET /notify/inb/messages", form, 401},
		{"POST /notify", form, 403},
		{"POST /notify/some/grafana", object, 403},
		{"POST /notify/inb", form + "\r\nSec-Fetch-Site: cross-site", 403},
		{"POST /notify/inb/silences", object, 403},
		{"POST /add/x", form, 403},
		{"POST /notify/console/queue", form, 403},
		{"GET /notify/inb/devices", form, 403},
		{"POST /notify/inb/nothing", object, 404},
		{"POST /notify/inb/grafana/more", object, 404},
		{"POST /notify/inb?beat=x", form, 404},
		{"POST /notify/inb/grafana?beat=x", object, 404},
		{"POST /notify/incidents/x", form, 404},
		{"DELETE /notify/messages/x", form, 404},
		{"PUT /notify/inb", form, 405},
		{"PATCH /notify/inb/grafana", object, 405},
		{"POST /notify/inb/ntfy/t/json", form, 405},
		{"PUT /add/x", form, 405},
		{"POST /notify/inb", object, 413},
		{"POST /notify/inb", form, 413},
		{"POST /notify/inb/slack", object, 413},
		{"POST /notify/inb", "Content-Type: application/zip", 415},
		{"POST /notify/inb", object + "\r\nContent-Encoding: gzip", 415},
		{"POST /notify/inb/slack", object + "\r\nContent-Encoding: gzip", 415},
		{"POST /notify/inb/devices", parts, 415},
	}
	bodies := map[string]string{
		"with a length":             "Content-Length: 1000",
		"that asks before the body": "Content-Length: 1000\r\nExpect: 100-continue",
		"of unknown length":         "Transfer-Encoding: chunked\r\nExpect: 100-continue",
	}
	for name, log := range map[string]string{"no access log": "", "an access log": "log {\noutput discard\n}\n"} {
		caddyhttptest.StartCaddy(t, "storage file_system "+t.TempDir()+
			"\nnotify {\nqueue {\npath "+t.TempDir()+"\n}\n"+pushOptions("")+"\n}",
			caddyhttptest.Server+` {
	`+log+`
	notify {
		stateless off
		max_body 100B
		max_in_flight 1
		configs {
			manage ann
		}
		console {
			manage ann
		}
		key ops {
			url json://127.0.0.1:1
			token `+opsToken+`
		}
		key inb {
			inbox 1h
			reader `+testReader+`
		}
		key some {
			url json://127.0.0.1:1
			accept direct
		}
	}
}
`)
		// the old server is gone now
		if got, body := caddyhttptest.Send(t.Context(), t, "/notify/ops", "body=x"); got != http.StatusUnauthorized {
			t.Fatalf("%d %s", got, body)
		}
		for _, tt := range all {
			for body, header := range bodies {
				if tt.want == http.StatusRequestEntityTooLarge && strings.Contains(header, "chunked") {
					continue // it is known when more has come
				}
				c := dialEarly(t)
				c.send(tt.request+" HTTP/1.1", tt.header, header)
				resp, text, err := c.answer(tt.request)
				if err != nil || resp.StatusCode != tt.want || !resp.Close {
					t.Errorf("%s, a request %s: %s: %v %v %s, want %d", name, body, tt.request, err, resp, text, tt.want)
				}
				_ = c.Close()
			}
		}
		// A request whose body is awaited takes the only room.
		waiting := dialEarly(t)
		waiting.send("POST /notify/inb HTTP/1.1", form, "Content-Length: 6", "Expect: 100-continue")
		if resp, _, err := waiting.answer("POST"); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("%v %v", resp, err)
		}
		for _, target := range []string{"/notify/inb", "/notify/inb/slack", "/notify/inb?beat=x"} {
			c := dialEarly(t)
			c.send("POST "+target+" HTTP/1.1", form, "Content-Length: 50")
			if resp, text, err := c.answer("POST"); err != nil ||
				resp.StatusCode != http.StatusServiceUnavailable || !resp.Close ||
				resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %s: %v %v %s", name, target, err, resp, text)
			}
			_ = c.Close()
		}
		// Who has sent the whole body keeps the connection, after an answer of each sort.
		for i, tt := range []struct {
			body string
			want int
		}{{"body=x", 200}, {"type=x&body=x", 400}, {"body=x", 200}} {
			if i > 0 {
				waiting.send("POST /notify/inb HTTP/1.1", form, fmt.Sprintf("Content-Length: %d", len(tt.body)))
			}
			if _, err := io.WriteString(waiting, tt.body); err != nil {
				t.Fatal(err)
			}
			if resp, text, err := waiting.answer("POST"); err != nil || resp.StatusCode != tt.want || resp.Close {
				t.Errorf("%s: %s: %v %v %s", name, tt.body, err, resp, text)
			}
		}
	}
}

// TestAnswersEarlyToSender checks that a client that sends a large body before it reads gets
// its answer, with a handler in front that changes answers.
func TestAnswersEarlyToSender(t *testing.T) {
	caddyhttptest.StartCaddy(t, "",
		caddyhttptest.Server+" {\nencode\nnotify {\nkey ops {\nurl json://127.0.0.1:1\ntoken "+opsToken+"\n}\n}\n}")
	part := strings.Repeat("x", 64<<10)
	const parts = 100
	for name, tt := range map[string]struct{ header, part, end string }{
		"with a length":     {fmt.Sprintf("Content-Length: %d", parts*len(part)), part, ""},
		"of unknown length": {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n", len(part), part), "0\r\n\r\n"},
	} {
		c := dialEarly(t)
		c.send("POST /notify/ops HTTP/1.1", "Content-Type: text/plain", "Accept-Encoding: gzip", tt.header)
		for range parts {
			if _, err := io.WriteString(c, tt.part); err != nil {
				t.Fatalf("a request %s: %v", name, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := io.WriteString(c, tt.end); err != nil {
			t.Fatalf("a request %s: %v", name, err)
		}
		resp, text, err := c.answer("POST")
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "a token of the key is missing") {
			t.Errorf("a request %s: %v %v %s", name, err, resp, text)
		}
		_ = c.Close()
	}
}
