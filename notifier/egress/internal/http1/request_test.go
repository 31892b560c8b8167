package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
)

// requests are changes of a request, by what they show.
var requests = map[string]func(*http.Request){
	"GET": func(r *http.Request) { r.Method, r.Body, r.ContentLength = "GET", nil, 0 },
	"no method": func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = "", http.NoBody, 0
	},
	"HEAD":               func(r *http.Request) { r.Method, r.Body, r.ContentLength = "HEAD", nil, 0 },
	"DELETE":             func(r *http.Request) { r.Method, r.Body, r.ContentLength = "DELETE", nil, 0 },
	"POST without body":  func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 },
	"PUT without body":   func(r *http.Request) { r.Method, r.Body, r.ContentLength = "PUT", nil, 0 },
	"PATCH without body": func(r *http.Request) { r.Method, r.Body, r.ContentLength = "PATCH", nil, 0 },
	"POST":               func(*http.Request) {},
	"GET with a body":    func(r *http.Request) { r.Method = "GET" },
	"own method":         func(r *http.Request) { r.Method = "NOTIFY" },
	"longest body": func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", maxBody))), maxBody
	},
	"body in parts": func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("one"), strings.NewReader("two"))), 6
	},
	"path": func(r *http.Request) { r.URL.Path = "/a b/ü/%2F\"<>" },
	"escaped path": func(r *http.Request) {
		r.URL.Path, r.URL.RawPath = "/a/b c", "/a%2Fb%20c"
	},
	"no path":      func(r *http.Request) { r.URL.Path = "" },
	"query":        func(r *http.Request) { r.URL.RawQuery = "a=b&c=%20d" },
	"empty query":  func(r *http.Request) { r.URL.ForceQuery = true },
	"fragment":     func(r *http.Request) { r.URL.Fragment = "fragment" },
	"user":         func(r *http.Request) { r.URL.User = url.UserPassword("user", "password") },
	"host":         func(r *http.Request) { r.Host = "example.com:81" },
	"user agent":   func(r *http.Request) { r.Header.Set("User-Agent", " me \t") },
	"empty agent":  func(r *http.Request) { r.Header["User-Agent"] = nil },
	"no header":    func(r *http.Request) { r.Header = http.Header{} },
	"gzip":         func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") },
	"range":        func(r *http.Request) { r.Header.Set("Range", "bytes=1-2") },
	"not sent":     func(r *http.Request) { r.Header["Idempotency-Key"] = nil },
	"wrong length": func(r *http.Request) { r.Header.Set("Content-Length", "99") },
	"second host":  func(r *http.Request) { r.Header.Set("Host", "other") },
	"order and space": func(r *http.Request) {
		r.Header = http.Header{"Z": {"last"}, "A": {" one ", "two\t", ""}, "M-N": {"ü \xff"}, "lower": {"x"}, "a": {"b"}}
	},
	"login": func(r *http.Request) { r.SetBasicAuth("user", "password") },
}

// The bytes on the wire are those of http.Transport.
func TestRequestsOnTheWire(t *testing.T) {
	s := serve(t, always("HTTP/1.1 204 No Content\r\n\r\n"))
	c, tr := newClient(t), newTransport(t)
	for name, change := range requests {
		before, _ := s.got()
		for _, rt := range []http.RoundTripper{tr, c} {
			r := s.request(t, http.MethodPost, "/path", "message")
			r.Header.Set("Content-Type", "text/plain")
			change(r)
			if !CanSend(r) {
				t.Errorf("%s: is not sent", name)
			}
			if _, err := send(rt, r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		all, _ := s.got()
		got := all[len(before):]
		if len(got) != 2 || got[0] != got[1] {
			t.Errorf("%s: got and want:\n%q", name, got)
		}
	}
	if _, conns := s.got(); conns != 2 {
		t.Errorf("%d connections, want one for each", conns)
	}
}

// http.Transport sends what a Client would not send as it should be.
func TestCanSend(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = []string{value} }
	}
	for name, change := range map[string]func(*http.Request){
		"https":             func(r *http.Request) { r.URL.Scheme = "https" },
		"no URL":            func(r *http.Request) { r.URL = nil },
		"no host":           func(r *http.Request) { r.URL.Host = "" },
		"host of IDN":       func(r *http.Request) { r.URL.Host = "bücher.example" },
		"zone":              func(r *http.Request) { r.URL.Host = "[fe80::1%eth0]:80" },
		"host with a line":  func(r *http.Request) { r.Host = "a\r\nb" },
		"host with a space": func(r *http.Request) { r.Host = "a b" },
		"opaque":            func(r *http.Request) { r.URL.Opaque = "//other/path" },
		"line in the query": func(r *http.Request) { r.URL.RawQuery = "a\r\nb" },
		"DEL in the query":  func(r *http.Request) { r.URL.RawQuery = "a\x7fb" },
		"CONNECT":           func(r *http.Request) { r.Method = http.MethodConnect },
		"invalid method":    func(r *http.Request) { r.Method = "A B" },
		"no header":         func(r *http.Request) { r.Header = nil },
		"invalid name":      header("a b", "c"),
		"empty name":        header("", "c"),
		"line in a value":   header("A", "b\r\nC: d"),
		"null in a value":   header("A", "b\x00"),
		"expect":            header("Expect", "100-continue"),
		"upgrade":           header("Upgrade", "websocket"),
		"connection":        header("Connection", "close"),
		"transfer encoding": header("Transfer-Encoding", "chunked"),
		"trailer field":     header("Trailer", "A"),
		"close":             func(r *http.Request) { r.Close = true },
		"trailer":           func(r *http.Request) { r.Trailer = http.Header{"A": nil} },
		"chunked":           func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"unknown length":    func(r *http.Request) { r.ContentLength = -1 },
		"body of no length": func(r *http.Request) { r.ContentLength = 0 },
		"length of no body": func(r *http.Request) { r.Body = nil },
		"long body":         func(r *http.Request) { r.ContentLength = maxBody + 1 },
		"cancel channel":    func(r *http.Request) { r.Cancel = make(chan struct{}) }, //nolint:staticcheck // see CanSend
		"trace": func(r *http.Request) {
			*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{}))
		},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/", strings.NewReader("message"))
		if err != nil {
			t.Fatal(err)
		}
		if !CanSend(r) {
			t.Fatal("the request without a change")
		}
		if change(r); CanSend(r) {
			t.Errorf("%s is sent", name)
		}
	}
}

// The body of a request is closed, and errors that it returns are those of
// RoundTrip. Nothing is sent then.
func TestRequestBody(t *testing.T) {
	s := serve(t, always(ok))
	failed, cancelled := errors.New("the file is gone"), errors.New("stopped")
	for name, tc := range map[string]struct {
		text string
		err  error // after text
		want string
	}{
		"as long as it says": {"12345", io.EOF, ""},
		"too short":          {"1234", io.EOF, "http: ContentLength=5 with Body length 4"},
		"empty":              {"", io.EOF, "http: ContentLength=5 with Body length 0"},
		"too long":           {"1234567", io.EOF, "http: ContentLength=5 with Body length 7"},
		"fails":              {"123", failed, "the file is gone"},
		"fails at the end":   {"12345", failed, "the file is gone"},
		"fails after it":     {"123456", failed, "the file is gone"},
	} {
		before, _ := s.got()
		b := &closing{Reader: io.MultiReader(strings.NewReader(tc.text), failing{tc.err})}
		r := s.request(t, http.MethodPost, "/", "12345")
		r.Body, r.GetBody = b, nil
		_, err := send(newClient(t), r)
		if got := errorText(err); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if !b.closed {
			t.Errorf("%s: the body stays open", name)
		}
		if after, _ := s.got(); len(after)-len(before) != map[bool]int{true: 1}[tc.want == ""] {
			t.Errorf("%s: %d requests", name, len(after)-len(before))
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cancelled)
	b := &closing{Reader: strings.NewReader("12345")}
	r := s.request(t, http.MethodPost, "/", "12345").WithContext(ctx)
	r.Body = b
	if _, err := newClient(t).RoundTrip(r); !errors.Is(err, cancelled) || !b.closed {
		t.Error(err, b.closed)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// failing is a reader that returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
