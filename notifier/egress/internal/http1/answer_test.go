package http1

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func withLength(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// describe sends a request and returns all that a caller can see of the answer.
func describe(rt http.RoundTripper, r *http.Request) string {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return "error: " + err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s, %d.%d, length %d, close %v, uncompressed %v, encoding %q", resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor,
		resp.ContentLength, resp.Close, resp.Uncompressed, resp.TransferEncoding)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		fmt.Fprintf(&out, ", %s: %q", name, resp.Header[name])
	}
	body, err := io.ReadAll(resp.Body)
	if len(body) > 1000 {
		body = fmt.Appendf(nil, "%d bytes", len(body))
	}
	fmt.Fprintf(&out, ", body %q, error %v", body, err)
	if _, again := resp.Body.Read(make([]byte, 1)); err == nil && again != io.EOF || err != nil && again == nil {
		fmt.Fprintf(&out, ", then %v", again)
	}
	fmt.Fprintf(&out, ", trailer %v, NoBody %v, of the request %v", resp.Trailer, resp.Body == http.NoBody, resp.Request == r)
	if err := resp.Body.Close(); err != nil {
		fmt.Fprintf(&out, ", close: %v", err)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); resp.Body != http.NoBody {
		fmt.Fprintf(&out, ", after it: %v", err)
	}
	return out.String()
}

const okLine = "HTTP/1.1 200 OK\r\n"

// answers are what servers send. They are read as http.Transport reads them.
var answers = []struct {
	name, method, answer string
	end                  bool // the server closes the connection
	reused               bool // the connection has the next request as well
}{
	{"with a length", "POST", ok, false, true},
	{"with header fields", "POST", okLine + "A: b\r\nb:c\r\nA:  d \r\nX:\r\n" + "Content-Length: 2\r\n\r\nok", false, true},
	{"long", "POST", withLength(okLine, strings.Repeat("x", 200_000)), false, true},
	{"empty", "POST", okLine + "Content-Length: 0\r\n\r\n", false, true},
	{"204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", false, true},
	{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, true},
	{"no reason", "POST", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"refused", "POST", withLength("HTTP/1.1 404 Not Found\r\n", "no such room"), false, true},
	{"line feeds only", "POST", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", false, true},
	{"HEAD", "HEAD", okLine + "Content-Length: 5\r\n\r\n", false, true},
	{"HEAD, chunked", "HEAD", okLine + "Transfer-Encoding: chunked\r\n\r\n", false, true},
	{"HEAD, gzip", "HEAD", okLine + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n", false, true},
	{"chunked", "POST", okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3;a=b\r\n123\r\n0\r\n\r\n", false, true},
	{"chunked with a trailer", "POST", okLine + "Trailer: A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n", false, true},
	{"chunked, empty", "POST", okLine + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, true},
	{"to the end", "POST", okLine + "\r\nok", true, false},
	{"to the end, long", "POST", okLine + "\r\n" + strings.Repeat("x", 100_000), true, false},
	{"close", "POST", okLine + "Connection: close\r\nContent-Length: 2\r\n\r\nok", false, false},
	{"close, empty", "POST", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", false, false},
	{"HTTP/1.0", "POST", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false, false},
	{"HTTP/1.0, keep-alive", "POST", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"100 before it", "POST", "HTTP/1.1 100 Continue\r\n\r\n" + ok, false, true},
	{"103 twice", "POST", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 2) + ok, false, true},
	{"many 1xx", "POST", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 3000) + ok, false, false},
	{"101", "POST", "HTTP/1.1 101 Switching Protocols\r\n\r\n", true, false},
	{"099", "POST", withLength("HTTP/1.1 099 What\r\n", "ok"), false, false},
	{"gzip", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", zipped("zipped text")), false, true},
	{"GZIP, chunked", "POST", okLine + fmt.Sprintf("Content-Encoding: GZIP\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(zipped("abc")), zipped("abc")), false, true},
	{"gzip twice", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", zipped("one ")+zipped("two")), false, true},
	{"gzip, long", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", zipped(strings.Repeat("x", 3_000_000))), false, true},
	{"gzip, empty", "POST", okLine + "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", false, true},
	{"no gzip", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", "plain text that is long enough"), false, true},
	{"gzip, cut", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", zipped("zipped text")[:20]), false, true},
	{"gzip and more", "POST", withLength(okLine+"Content-Encoding: gzip\r\n", zipped("zipped text")+"0123456789abcdef"), false, true},
	{"another encoding", "POST", withLength(okLine+"Content-Encoding: br\r\n", "abc"), false, true},
	{"bytes after it", "POST", ok + "more", false, false},
	{"two answers", "POST", ok + ok, false, false},
	{"bytes after 204", "POST", "HTTP/1.1 204 No Content\r\n\r\nbody", false, false},
	{"truncated body", "POST", okLine + "Content-Length: 5\r\n\r\nok", true, false},
	{"truncated chunk", "POST", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nok", true, false},
	{"no last chunk", "POST", okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", true, false},
	{"malformed chunk", "POST", okLine + "Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n", true, false},
	{"nothing", "POST", "", true, false},
	{"half a line", "POST", "HTTP/1.1 20", true, false},
	{"half a head", "POST", okLine + "A: b\r\nC", true, false},
	{"malformed line", "POST", "hello\r\n\r\n", true, false},
	{"SSH", "POST", "SSH-2.0-OpenSSH_9.2\r\n", true, false},
	{"malformed code", "POST", "HTTP/1.1 2x0 OK\r\n\r\n", true, false},
	{"malformed version", "POST", "HTTP/x 200 OK\r\n\r\n", true, false},
	{"HTTP/2", "POST", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"malformed field", "POST", okLine + "no colon\r\n\r\n", true, false},
	{"folded field", "POST", okLine + "A: b\r\n c\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"malformed length", "POST", okLine + "Content-Length: x\r\n\r\n", true, false},
	{"negative length", "POST", okLine + "Content-Length: -1\r\n\r\n", true, false},
	{"two lengths", "POST", okLine + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", true, false},
	{"length twice", "POST", okLine + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"length and chunks", "POST", okLine + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false, true},
	{"unknown encoding", "POST", okLine + "Transfer-Encoding: gzip, chunked\r\n\r\n", true, false},
	{"longest head", "POST", okLine + "A: " + strings.Repeat("x", MaxHead-100) + "\r\nContent-Length: 2\r\n\r\nok", false, true},
	{"too long line", "POST", okLine + "A: " + strings.Repeat("x", MaxHead) + "\r\nContent-Length: 2\r\n\r\nok", false, false},
	{"too many fields", "POST", okLine + strings.Repeat("A: bc\r\n", MaxHead/7+10) + "Content-Length: 2\r\n\r\nok", false, false},
}

func TestAnswers(t *testing.T) {
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, func(_ int, c net.Conn) bool {
				_, err := io.WriteString(c, tc.answer)
				return err == nil && !tc.end
			})
			want := describe(newTransport(t), s.request(t, tc.method, "/", ""))
			c := newClient(t)
			for range 2 {
				if got := describe(c, s.request(t, tc.method, "/", "")); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
			if _, conns := s.got(); conns != 3 && !tc.reused || conns != 2 && tc.reused {
				t.Errorf("%d connections for the client's two requests", conns-1)
			}
		})
	}
}

// An answer that arrives byte by byte is the same answer.
func TestSlowAnswers(t *testing.T) {
	for _, tc := range answers {
		if len(tc.answer) > 1000 {
			continue
		}
		whole := serve(t, func(_ int, c net.Conn) bool {
			_, err := io.WriteString(c, tc.answer)
			return err == nil && !tc.end
		})
		slow := serve(t, func(_ int, c net.Conn) bool {
			for i := range len(tc.answer) {
				if _, err := io.WriteString(c, tc.answer[i:i+1]); err != nil {
					return false
				}
			}
			return !tc.end
		})
		want := describe(newTransport(t), whole.request(t, tc.method, "/", ""))
		if got := describe(newClient(t), slow.request(t, tc.method, "/", "")); got != want {
			t.Errorf("%s: got  %s\nwant %s", tc.name, got, want)
		}
	}
}

// A server may answer and close before it has read the request, or send a long
// answer without reading the request at all.
func TestEarlyAnswers(t *testing.T) {
	body := strings.Repeat("x", maxBody)
	long := strings.Repeat("y", 4<<20)
	for name, answer := range map[string]func(net.Conn){
		"answer": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_, _ = io.WriteString(c, withLength("HTTP/1.1 413 Too Long\r\nConnection: close\r\n", "too long"))
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		},
		"long answer": func(c net.Conn) {
			_, _ = io.WriteString(c, withLength("HTTP/1.1 413 Too Long\r\nConnection: close\r\n", long))
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			answer(c)
		}()
		s := &server{address: l.Addr().String()}
		if got := describe(newClient(t), s.request(t, "POST", "/", body)); !strings.HasPrefix(got, "413 Too Long") || !strings.Contains(got, "error <nil>") {
			t.Errorf("%s: %s", name, got)
		}
		_ = l.Close()
		<-done
	}
}

// A connection whose answer is not read to its end is closed.
func TestUnreadAnswer(t *testing.T) {
	var random strings.Builder // is hardly compressed
	for range 10_000 {
		fmt.Fprint(&random, rand.Int64()) //nolint:gosec // no secret
	}
	for name, answer := range map[string]string{
		"plain":   withLength(okLine, "a longer answer"),
		"gzip":    withLength(okLine+"Content-Encoding: gzip\r\n", zipped(random.String())),
		"chunked": okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\n123\r\n0\r\n\r\n",
	} {
		s := serve(t, always(answer))
		c := newClient(t)
		for range 2 {
			resp, err := c.RoundTrip(s.request(t, "GET", "/", ""))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
				t.Error(name, err)
			}
			for range 2 {
				if err := resp.Body.Close(); err != nil {
					t.Error(name, err)
				}
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err != errClosed {
				t.Error(name, err)
			}
		}
		if _, conns := s.got(); conns != 2 || idle(c) != 0 {
			t.Errorf("%s: %d connections, %d idle", name, conns, idle(c))
		}
	}
}

// FuzzAnswer compares answers with what http.Transport makes of them.
func FuzzAnswer(f *testing.F) {
	for _, tc := range answers {
		if len(tc.answer) < 1000 {
			f.Add(tc.answer, tc.method == "HEAD")
		}
	}
	f.Fuzz(func(t *testing.T, answer string, head bool) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, other := net.Pipe()
			go func() {
				defer other.Close()
				new(server).read(other, func(_ int, c net.Conn) bool {
					_, _ = io.WriteString(c, answer)
					return false
				})
			}()
			return client, nil
		}
		s := &server{address: "example.com"}
		method := http.MethodPost
		if head {
			method = http.MethodHead
		}
		tr := newTransport(t)
		tr.DialContext = dial
		c := newClient(t)
		c.Dial = dial
		want := describe(tr, s.request(t, method, "/", "message"))
		if strings.HasPrefix(want, "101") {
			return // with http.Transport, the caller may get the connection
		}
		if got := describe(c, s.request(t, method, "/", "message")); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
