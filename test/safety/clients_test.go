package safety

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// memory is the maximum memory, in bytes, that a gateway may take while it
// refuses requests.
const memory = 160 << 20

// form returns a multipart form and its media type.
func form(t *testing.T, write func(*multipart.Writer)) (contentType, body string) {
	t.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// TestHostileClients checks that requests that are too large, too deep or
// malformed get a clear error with bounded memory, and leave nothing behind.
func TestHostileClients(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	var mu sync.Mutex
	arrived := 0
	fine := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Connection", "close")
		mu.Lock()
		defer mu.Unlock()
		arrived++
	})
	g := start(t, "", "timeout "+seconds(5)+"\nmax_body 8MiB\nattachments {\nmax_size 4MiB\n"+
		"max_count 3\n}\negress {\nallow 127.0.0.1\n}\nkey k {\nurl json://"+authority(fine)+"/ a\n}")
	before, heap := g.goroutines(), g.memory().HeapAlloc
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded"
	manyParts, manyPartsBody := form(t, func(w *multipart.Writer) {
		for i := range 10_000 {
			_ = w.WriteField(fmt.Sprintf("f%d", i), "x")
		}
	})
	manyFiles, manyFilesBody := form(t, func(w *multipart.Writer) {
		for i := range 100 {
			f, _ := w.CreateFormFile("attach", fmt.Sprintf("f%d", i))
			_, _ = f.Write(make([]byte, 256<<10))
		}
	})
	hugeHeaders, hugeHeadersBody := form(t, func(w *multipart.Writer) {
		_, _ = w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="body"`}, "X": {strings.Repeat("h", 20<<20)}})
	})
	large, largeBody := form(t, func(w *multipart.Writer) {
		f, _ := w.CreateFormFile("attach", "large")
		_, _ = f.Write(make([]byte, 5<<20))
	})
	nested := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	quoted := func(n int) string { return `"` + strings.Repeat("x,", n) + `"` }
	fan := "/notify/k?"
	for i := range 64 {
		fan += fmt.Sprintf(":a.b[%d].c=body&", i)
	}
	wide := `{"a":{"b":[` + strings.TrimSuffix(strings.Repeat(`{"c":"`+strings.Repeat("y", 1000)+`"},`, 7000), ",") + `]}}`
	for _, tt := range []struct {
		name, path, contentType, body string
		status                        int
		want                          string
	}{
		{"ten thousand parts", "/notify/k", manyParts, manyPartsBody, 400, "more than 1000 parts"},
		{"a hundred files", "/notify/k", manyFiles, manyFilesBody, 413, ""},
		{"huge headers of a part", "/notify/k", hugeHeaders, hugeHeadersBody, 413, ""},
		{"a file that is too large", "/notify/k", large, largeBody, 413, "larger than 4.0 MiB"},
		{"a form that ends early", "/notify/k", large, largeBody[:1<<20], 400, "to its end"},
		{"a form without a boundary", "/notify/k", "multipart/form-data", "x", 400, "boundary"},
		{"a boundary that never comes", "/notify/k", "multipart/form-data; boundary=b", strings.Repeat("x", 8<<20), 400, "malformed"},
		{"a hundred thousand tags", "/notify/k", asJSON, `{"body":"x","tag":` + quoted(100_000) + `}`, 400, "tag"},
		{
			"a hundred thousand tags in an array", "/notify/k", asJSON,
			`{"body":"x","tag":[` + strings.Repeat(`"x",`, 100_000) + `"x"]}`, 400, "tag",
		},
		{"a hundred thousand tags in a form", "/notify/k", asForm, "body=x" + strings.Repeat("&tag=x", 100_000), 400, ""},
		{"tags a thousand deep", "/notify/k", asJSON, `{"body":"x","tag":` + nested("[", "]", 1000) + `}`, 400, "tag"},
		{"JSON a million deep", "/notify/k", asJSON, `{"body":"x","y":` + nested("[", "]", 1_000_000) + `}`, 400, "JSON"},
		{"JSON of the wrong type a thousand deep", "/notify/k", asJSON, `{"body":` + nested(`{"a":`, "}", 1000) + `}`, 400, ""},
		{"a hundred thousand fields", "/notify/k", asJSON, `{` + strings.Repeat(`"a":1,`, 100_000) + `"body":"x"}`, 400, "more than 1000 fields"},
		{"a hundred thousand fields of a form", "/notify/k", asForm, strings.Repeat("a=1&", 100_000) + "body=x", 400, ""},
		{"a hundred thousand URLs", "/notify", asJSON, `{"body":"x","urls":` + `"` + strings.Repeat("json://h,", 100_000) + `"}`, 400, "URLs"},
		{"a URL of a megabyte", "/notify", asJSON, `{"body":"x","urls":"json://h/` + strings.Repeat("a/", 1<<19) + `"}`, 400, ""},
		{"a thousand mappings", "/notify/k?" + strings.Repeat(":a=body&", 1000), asJSON, `{"a":"x"}`, 400, "mappings"},
		{"a mapping that is too deep", "/notify/k?:" + strings.Repeat("a.", 100) + "a=body", asJSON, `{"a":"x"}`, 400, "steps"},
		{"mappings that fan out", fan, asJSON, wide, 400, "too much JSON"},
		{"text that is too long", "/notify/k", asForm, "body=" + strings.Repeat("x", 9<<20), 413, ""},
		{"JSON that is too long", "/notify/k", asJSON, `{"body":"` + strings.Repeat("x", 9<<20) + `"}`, 413, ""},
		{"a picture as a text", "/notify/k", "text/plain", "\xff\xd8\xff\xe0\x00\x10JFIF", 400, "the text is a file"},
		{
			"a file in base64 that is too large", "/notify/k", asJSON,
			`{"body":"x","attach":{"base64":"` + strings.Repeat("QUJD", 5<<20/3) + `"}}`, 413, "larger than 4.0 MiB",
		},
		{"invalid base64", "/notify/k", asJSON, `{"body":"x","attach":{"base64":"` + strings.Repeat("!", 5<<20) + `"}}`, 400, "base64"},
		{
			"a thousand files in base64", "/notify/k", asJSON,
			`{"body":"x","attach":[` + strings.TrimSuffix(strings.Repeat(`{"base64":"QUJD"},`, 1000), ",") + `]}`,
			400, "too many attachments",
		},
		{"a type of a megabyte", "/notify/k", asJSON, `{"body":"x","type":"` + strings.Repeat("t", 1<<20) + `"}`, 400, "type"},
		{
			"JSON a thousand deep", "/notify/k?:a" + strings.Repeat(".a", 14) + "=body", asJSON,
			strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000), 400, "body",
		},
		{"compressed", "/notify/k", "application/zip", "PK", 415, ""},
	} {
		begun := time.Now()
		got := g.do(tt.path, tt.contentType, strings.NewReader(tt.body))
		if got.Status != tt.status || !strings.Contains(got.Error, tt.want) || got.Error == "" {
			t.Errorf("%s: status %d, want %d, in %s: %.300s", tt.name, got.Status, tt.status, time.Since(begun), got.Body)
		}
		if len(got.Body) > 64<<10 {
			t.Errorf("%s: the answer has %d bytes", tt.name, len(got.Body))
		}
	}
	if arrived > 0 {
		t.Errorf("%d messages arrived", arrived)
	}
	if n := g.peak(); n > memory {
		t.Errorf("the gateway took %d MiB", n>>20)
	}
	if got := g.post("/notify/k", message{"body": "x"}); got.Status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
	g.waitIdle(before)
	g.waitFreed(heap)
}

// newDiscard starts a destination that accepts every request and closes the
// connection.
func newDiscard(t *testing.T) *httptest.Server {
	return serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Connection", "close")
	})
}

// raw sends text as it is, and returns what the gateway sends until it closes
// the connection or until the timeout is over.
func (g *gateway) raw(text string, timeout time.Duration) string {
	g.t.Helper()
	c, err := net.Dial("tcp", g.address())
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(timeout))
	go func() { _, _ = io.WriteString(c, g.self(text)) }()
	out, _ := io.ReadAll(bufio.NewReader(c))
	return string(out)
}

// TestContradictoryRequests checks requests whose headers contradict their bodies, and
// requests that are not finished.
func TestContradictoryRequests(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	fine := newDiscard(t)
	g := start(t, "", "attachments {\nmax_size 1MiB\n}\nkey k {\nurl json://"+authority(fine)+"/\n}")
	before := g.goroutines()
	head := "POST /notify/k HTTP/1.1\r\nHost: SELF\r\nConnection: close\r\n"
	for name, tt := range map[string]struct{ request, want string }{
		"claims a terabyte":         {head + "Content-Type: application/json\r\nContent-Length: 1099511627776\r\n\r\n{", " 413 "},
		"claims less than it sends": {head + "Content-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"body\":\"x\"}", " 400 "},
		"two lengths":               {head + "Content-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}", " 400 "},
		"length and chunks": {
			head + "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"body\":\"x\"}\r\n0\r\n\r\n",
			" 200 ",
		},
		"broken chunks": {head + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", " 400 "},
		"huge headers":  {head + "X: " + strings.Repeat("h", 4<<20) + "\r\n\r\n", " 431 "},
		"a huge target": {"POST /notify/" + strings.Repeat("k", 4<<20) + " HTTP/1.1\r\nHost: SELF\r\n\r\n", " 431 "},
		"a line break in the key": {
			"POST /notify/k%0d%0aX-Evil:%201 HTTP/1.1\r\nHost: SELF\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
			" 404 ",
		},
		"many passes": {
			head + "X-Apprise-Recursion-Count: 99999999999999999999\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"body\":\"x\"}",
			" 508 ",
		},
		"a media type of a megabyte": {
			head + "Content-Type: application/json; " + strings.Repeat("a=b;", 1<<16) + "\r\nContent-Length: 12\r\n\r\n{\"body\":\"x\"}",
			"",
		},
		"an Accept of five hundred": {
			head + "Accept: " + strings.Repeat("a/b;q=0.1,", 500) + "\r\n" +
				"Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"body\":\"x\"}",
			" 200 ",
		},
		"an Accept with quotes astray": {
			head + "Accept: \"\\,\"\"\"" + strings.Repeat("\"", 10_000) + "\r\n" +
				"Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"body\":\"x\"}",
			" 200 ",
		},
	} {
		got := g.raw(tt.request, 10*time.Second)
		line, _, _ := strings.Cut(got, "\r\n")
		if tt.want != "" && !strings.Contains(line, tt.want) {
			t.Errorf("%s: %q, want%s", name, line, tt.want)
		}
		if strings.Contains(strings.ToLower(got), "\nx-evil") {
			t.Errorf("%s: a header got in: %q", name, got)
		}
	}
	// Clients that hang up halfway leave nothing behind.
	body := "--b\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"f\"\r\n\r\n" + strings.Repeat("x", 1<<20)
	for range 20 {
		g.raw(head+"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 2000000\r\n\r\n"+body, 100*time.Millisecond)
		g.raw(head+"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"body\":", 10*time.Millisecond)
	}
	g.waitIdle(before)
	// A slow request is answered when it is complete, and delays no other.
	c, err := net.Dial("tcp", g.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, g.self(head)+"Content-Type: application/json\r\nContent-Length: 12\r\n\r\n")
	for _, b := range []byte(`{"body":"x"}`) {
		if got := g.post("/notify/k", message{"body": "x"}); got.Status != 200 {
			t.Errorf("during a slow request: %+v", got)
		}
		_, _ = c.Write([]byte{b})
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("the slow client got %q, %v", line, err)
	}
}

// TestFalseAttachmentSizes checks that fetched attachments are limited in size and
// time, even if the server announces other sizes.
func TestFalseAttachmentSizes(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	fine := newDiscard(t)
	timeout := seconds(4)
	g := start(t, "", "timeout "+timeout+"\nattachments {\nmax_size 2MiB\n}\n"+
		"egress {\nallow 127.0.0.1\n}\nkey k {\nurl json://"+authority(fine)+"/\n}")
	before, heap := g.goroutines(), g.memory().HeapAlloc
	megabyte := strings.Repeat("gigabyte", 1<<17)
	var wg sync.WaitGroup
	for _, tt := range []struct {
		name  string
		serve func(net.Conn)
		want  string
	}{
		{"a gigabyte with its length", forever("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", megabyte, 0), "larger than 2.0 MiB"},
		{"a gigabyte that does not", forever("HTTP/1.1 200 OK\r\n\r\n", megabyte, 0), "larger than 2.0 MiB"},
		{"less than its length", answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"), "EOF"},
		{"silence", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "not fetched within " + timeout},
		{"one byte at a time", forever("HTTP/1.1 200 OK\r\n\r\n", "x", 50*time.Millisecond), "not fetched within " + timeout},
		{"a circle", answering(status("302 Found", "Location: /x")), "redirects"},
		{"404", answering(status("404 No")), "404"},
		{"a bomb", answering("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\nConnection: close\r\n\r\n\x1f\x8b\x08"), ""},
		{"no HTTP", answering("220 smtp\r\n"), "malformed"},
	} {
		address := listen(t, "127.0.0.1:0", tt.serve)
		wg.Go(func() {
			got := g.post("/notify/k", message{"body": "x", "attach": "http://" + address + "/f"})
			if tt.want == "" && got.Status == 200 {
				return
			}
			if got.Status != 400 || !strings.Contains(got.Error, tt.want) {
				t.Errorf("%s: status %d: %s", tt.name, got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	if n := g.peak(); n > memory {
		t.Errorf("the gateway took %d MiB", n>>20)
	}
	g.waitIdle(before)
	g.waitFreed(heap)
}

// TestNamesOfClients checks that file names and other texts of clients add no
// header and no part, and write no file outside the temporary folder.
func TestNamesOfClients(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	type part struct {
		header textproto.MIMEHeader
		name   string
		body   string
	}
	got := make(chan []part, 10)
	requests := make(chan http.Header, 10)
	fine := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Header
		parts := []part{}
		in, err := r.MultipartReader()
		for err == nil {
			var p *multipart.Part
			if p, err = in.NextRawPart(); err == nil {
				b, _ := io.ReadAll(p)
				parts = append(parts, part{p.Header, p.FileName(), string(b)})
			}
		}
		if err != io.EOF {
			t.Errorf("the destination got no form: %v", err)
		}
		got <- parts
	})
	g := start(t, "", "key k {\nurl form://"+authority(fine)+"/\n}")
	evil := []string{
		"../../../etc/passwd", `..\..\evil.exe`, "/etc/passwd", "a\x00b.txt",
		"a\r\nX-Evil: 1\r\n\r\nbody", "a\nX-Evil: 1", "a\"; name=\"evil", "a\\\"; filename=\"x",
		"..", ".", "/", "", " ", "\u202etxt.exe", "a\u2028b", strings.Repeat("n", 4<<20),
		"--boundary--", "a%0d%0aX-Evil: 1", "a;b=c", "=?utf-8?q?=0D=0AX-Evil:_1?=", "\xff\xfe",
	}
	types := []string{
		"text/plain", "text/plain\r\nX-Evil: 1", "text/plain;\r\n\r\nx=\"evil\"",
		"text/plain; x=\"a\\\"b\"", "évil/ül", "", "a/b; name=\"x\r\nX-Evil: 1\"",
	}
	for _, name := range evil {
		for i, kind := range types {
			if name != evil[0] && i > 2 {
				continue
			}
			got1 := g.post("/notify/k", message{"body": "b\r\nX-Evil: 1", "title": "t\r\nX-Evil: 1\x00", "attach": []any{
				map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte("content")), "filename": name, "mimetype": kind},
			}})
			if got1.Status != 200 {
				t.Errorf("%q %q: status %d: %s", name, kind, got1.Status, got1.Body)
				continue
			}
			for header := range <-requests {
				if strings.Contains(header, "Evil") {
					t.Errorf("%q %q: a header got in", name, kind)
				}
			}
			files := 0
			for _, p := range <-got {
				for header := range p.header {
					if header != "Content-Disposition" && header != "Content-Type" {
						t.Errorf("%q %q: a header got into a part: %v", name, kind, p.header)
					}
				}
				if p.header.Get("Content-Type") == "" {
					continue
				}
				files++
				if p.body != "content" || p.name == "" || strings.ContainsAny(p.name, "/\\\r\n\x00") ||
					strings.HasPrefix(p.name, "..") || len(p.name) > 1100 {
					t.Errorf("%q %q: the file arrived as %.100q: %.100q", name, kind, p.name, p.body)
				}
			}
			if files != 1 {
				t.Errorf("%q %q: %d files arrived", name, kind, files)
			}
		}
	}
	if _, err := os.Stat(g.tmp + "/../evil.exe"); err == nil {
		t.Error("a file was written outside the temporary folder")
	}
	var log bytes.Buffer
	for line := range strings.Lines(g.log()) {
		if !json.Valid([]byte(line)) {
			log.WriteString(line)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has lines that the gateway did not write: %.500s", &log)
	}
}
