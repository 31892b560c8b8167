package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
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
		io.WriteString(w, strings.Join([]string{
			r.Method, string(body), r.Header.Get("Content-Type"),
			r.Header.Get("Authorization"), r.Header.Get("X-Token"),
		}, ","))
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
		{
			"/307", "http://127.0.0.2:1/",
			"the address 127.0.0.2 is loopback (127.0.0.0/8), and URLs of clients may not reach it",
		},
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

// answerOnce starts a server that reads from one connection, calls answer, and
// closes the connection when that returns.
func answerOnce(t *testing.T, answer func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 4096))
		answer(c)
	})
	t.Cleanup(func() {
		_ = l.Close()
		server.Wait()
	})
	return l.Addr().String()
}

// get returns the first error of a request to address, from Do or from reading the answer.
func get(t *testing.T, address string) error {
	t.Helper()
	p := NewPool("test")
	defer p.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Do(r, Options{Insecure: true})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

// An error about an answer that is not HTTP has nothing of the answer: net/http
// quotes a part of a line, which can hold a part of a secret.
func TestMalformedAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 the secret\r\n\r\n":                          "the answer is not valid HTTP (malformed HTTP status code)",
		"the secret\r\n\r\n":                                   "the answer is not valid HTTP (malformed HTTP status code)",
		"secret\r\n\r\n":                                       "the answer is not valid HTTP (malformed HTTP response)",
		"HTTP/secret 200 OK\r\n\r\n":                           "the answer is not valid HTTP (malformed HTTP version)",
		"HTTP/1.1 200 OK\r\nthe secret\r\n\r\n":                "the answer is not valid HTTP (malformed MIME header)",
		"HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n":    "the answer is not valid HTTP (bad Content-Length)",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n": "the answer is not valid HTTP (unsupported transfer encoding)",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: secret\r\n\r\nx": "the " +
			"answer is not valid HTTP (message cannot contain multiple Content-Length headers)",

		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nthe secret\r\n\r\n": "the answer is not valid HTTP (malformed MIME header)",

		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 70_000) + "\r\n\r\n": "net/http: " +
			"HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted",
	} {
		address := answerOnce(t, func(c net.Conn) { _, _ = io.WriteString(c, answer) })
		if err := get(t, "http://"+address); err == nil || err.Error() != want {
			t.Errorf("%.100q: %v, want %s", answer, err, want)
		}
	}
}

// Nor has an error about an answer over HTTP/2.
func TestMalformedAnswerHTTP2(t *testing.T) {
	var head bytes.Buffer
	fields := hpack.NewEncoder(&head)
	_ = fields.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	good := bytes.Clone(head.Bytes())
	_ = fields.WriteField(hpack.HeaderField{Name: "the secret", Value: "x"})
	for name, tc := range map[string]struct {
		answer func(*http2.Framer) error
		want   string
	}{
		"name of a field": {func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: true})
		}, "the answer is not valid HTTP (stream error: stream ID 1; PROTOCOL_ERROR; invalid header field name)"},
		"end of the connection": {func(f *http2.Framer) error {
			return f.WriteGoAway(1, http2.ErrCodeEnhanceYourCalm, []byte("the secret"))
		}, "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM"},
		"end in the body": {func(f *http2.Framer) error {
			return errors.Join(
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: good, EndHeaders: true}),
				f.WriteGoAway(1, http2.ErrCodeInternal, []byte("the secret")))
		}, "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=INTERNAL_ERROR"},
	} {
		// This server speaks HTTP/2 with one client and one request.
		s := httptest.NewUnstartedServer(nil)
		s.EnableHTTP2 = true
		s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
			f := http2.NewFramer(c, c)
			_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
			_ = f.WriteSettings()
			for {
				frame, err := f.ReadFrame()
				if err != nil {
					return
				}
				if frame.Header().Type == http2.FrameHeaders {
					if err := tc.answer(f); err != nil {
						t.Error(err)
					}
					_ = c.CloseWrite()
				}
			}
		}}
		s.StartTLS()
		if err := get(t, s.URL); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		s.Close()
	}
}
