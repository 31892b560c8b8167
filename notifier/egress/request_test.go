package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// serve returns the address of an HTTP server that ends with the test.
func serve(t *testing.T, handler http.HandlerFunc) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// A redirect keeps method and body, except for status 303. Headers that may
// hold credentials stay only if the host is the same.
func TestDoRedirects(t *testing.T) {
	describe := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, strings.Join([]string{r.Method, string(body), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("X-Token")}, ","))
	}
	other := serve(t, describe)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			describe(w, r)
			return
		}
		to := r.URL.Query().Get("to")
		if r.URL.Path == "/loop" {
			to = "/loop"
		}
		w.Header().Set("Location", to)
		status := map[string]int{"/301": 301, "/303": 303, "/307": 307, "/loop": 302}
		w.WriteHeader(status[r.URL.Path])
	})
	policy := mustPolicy(t, []string{"127.0.0.1"}, nil)
	p := NewPool("test")
	defer p.Close()
	for _, tc := range []struct {
		path, to, want string
	}{
		{"/301", "/end", "POST,message,text/plain,Basic dTpw,token"},
		{"/307", "/end", "POST,message,text/plain,Basic dTpw,token"},
		{"/303", "/end", "GET,,,Basic dTpw,token"},
		{"/307", other, "POST,message,text/plain,,"},
		{"/301", "ftp://h/", "redirected to an invalid address; Location must be an http or https URL"},
		{"/301", "http:", "redirected to an invalid address; Location must be an http or https URL"},
		{"/loop", "", "more than 5 redirects"},
		{"/307", "http://127.0.0.2:1/", "the address 127.0.0.2 is loopback (127.0.0.0/8), and URLs of clients may not reach it; the operator can allow it with egress"},
	} {
		r, err := http.NewRequest(http.MethodPost, server+tc.path+"?to="+url.QueryEscape(tc.to), strings.NewReader("message"))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("u", "p")
		r.Header.Set("X-Token", "token")
		r.Header.Set("Content-Type", "text/plain")
		var got string
		resp, err := p.Do(r, Options{Policy: policy, FollowRedirects: true})
		if err != nil {
			got = err.Error()
		} else {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			got = string(body)
		}
		if got != tc.want {
			t.Errorf("%s to %s: got %q, want %q", tc.path, tc.to, got, tc.want)
		}
	}
}

// Errors of net/http are explained, and do not contain the URL.
func TestTransportError(t *testing.T) {
	for want, err := range map[string]error{
		"instead of answering": &url.Error{Op: "Get", URL: "http://h/secret", Err: io.EOF},
		"before it was asked":  &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")},
		"refused":              &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("refused")},
	} {
		got := transportError(err).Error()
		if !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "readLoop") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An error about an answer that is not HTTP has nothing of the answer: net/http
// quotes a part of a line, which can hold a part of a secret.
func TestMalformedAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 the secret\r\n\r\n":                                             "the answer is not valid HTTP (malformed HTTP status code)",
		"the secret\r\n\r\n":                                                      "the answer is not valid HTTP (malformed HTTP status code)",
		"secret\r\n\r\n":                                                          "the answer is not valid HTTP (malformed HTTP response)",
		"HTTP/secret 200 OK\r\n\r\n":                                              "the answer is not valid HTTP (malformed HTTP version)",
		"HTTP/1.1 200 OK\r\nthe secret\r\n\r\n":                                   "the answer is not valid HTTP (malformed MIME header)",
		"HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n":                       "the answer is not valid HTTP (bad Content-Length)",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n":                    "the answer is not valid HTTP (unsupported transfer encoding)",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: secret\r\n\r\nx": "the answer is not valid HTTP (message cannot contain multiple Content-Length headers)",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, answer)
		}()
		p := NewPool("test")
		r, err := http.NewRequest(http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.Do(r, Options{})
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
		p.Close()
		_ = l.Close()
	}
}
