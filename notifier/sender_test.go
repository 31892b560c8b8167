package notifier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// target starts a destination and returns the start of a probe URL to it.
func target(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "probe://" + strings.TrimPrefix(s.URL, "http://")
}

func newTestSender(t *testing.T) *Sender {
	t.Helper()
	pool := egress.NewPool("caddy-notify/test")
	t.Cleanup(pool.Close)
	return NewSender(pool, 0)
}

func send(t *testing.T, s *Sender, m *Message, o Options, urls ...string) *Report {
	t.Helper()
	var targets []Target
	for _, u := range urls {
		d, err := s.Parse(u, nil)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, Target{Destination: d})
	}
	return s.Send(context.Background(), m, targets, o)
}

var hello = &Message{Title: "T", Body: "hello"}

// A message that asks nothing of a destination is no success of sending and
// no failure; one of which a part is sent is delivered.
func TestSkip(t *testing.T) {
	var arrived atomic.Int32
	url := target(t, func(http.ResponseWriter, *http.Request) { arrived.Add(1) }) + "/tok-secret?mode=skip&overflow=split"
	long := strings.Repeat("words and ", 200)
	for _, tt := range []struct {
		body string
		want Status
		sent int32
	}{
		{"hello", Skipped, 0},
		{long, Skipped, 0},
		{long + " wanted", Delivered, 1},
		{"wanted", Delivered, 1},
	} {
		arrived.Store(0)
		report := send(t, newTestSender(t), &Message{Body: tt.body}, Options{}, url)
		if r := report.Results[0]; r.Status != tt.want || r.Err != nil || r.Attempts != 1 || !report.OK() || arrived.Load() != tt.sent {
			t.Errorf("%.20s: %s, %v after %d tries; %d arrived", tt.body, r.Status, r.Err, r.Attempts, arrived.Load())
		}
		said := fmt.Sprint(report.Records)
		if strings.Contains(said, "Sent ") != (tt.want == Delivered) || tt.want == Skipped && !strings.Contains(said, "WARNING nothing to do for xxxxx") {
			t.Errorf("%.20s: %s", tt.body, said)
		}
	}
}

// One destination's trouble is that destination's failure, in words, and
// delays no other.
func TestSendFaults(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	tests := []struct {
		name, url, want string
		handler         http.HandlerFunc
	}{
		{"panic", "?mode=panic", "internal error", nil},
		{"panic, also at the end", "?mode=panic&store=no", "internal error", nil},
		{"hang", "?mode=hang", "not done within", nil},
		{"deaf to its context", "?mode=deaf", "not done within", nil},
		{"refused", "?port=1", "connection refused", nil},
		{"status", "", "the service answered 403 Forbidden: go away, xxxxx", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, "go away,\n tok-secret")
		}},
		{"silence", "", "not done within", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"rto", "?rto=0.05", "no answer within 50ms (rto)", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"huge", "", "longer than 1 MiB", func(w http.ResponseWriter, r *http.Request) {
			block := make([]byte, 64<<10)
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}},
		{"slow", "", "not done within", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}},
		{"no HTTP", "", "malformed HTTP", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(c, "SSH-2.0\r\n\r\n")
			_ = c.Close()
		}},
		{"reset", "", "EOF", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }},
		{"circle", "", "more than 5 redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", 302) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestSender(t)
			base := ok
			if tt.handler != nil {
				base = target(t, tt.handler)
			}
			report := send(t, s, hello, Options{Timeout: 300 * time.Millisecond}, ok+"/tok-good", base+"/tok-secret"+tt.url)
			if r := report.Results[0]; r.Status != Delivered || r.Err != nil || r.Attempts != 1 {
				t.Errorf("the other destination: %+v", r)
			}
			r := report.Results[1]
			if r.Status != Failed || r.Err == nil || !strings.Contains(r.Err.Error(), tt.want) {
				t.Errorf("got %s: %v, want %s", r.Status, r.Err, tt.want)
			}
			if report.OK() {
				t.Error("the report says that all is well")
			}
			if all := fmt.Sprint(report.Results, report.Records); strings.Contains(all, "tok-secret") {
				t.Errorf("the token shows: %s", all)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	failing := func(n int32, code int, header ...string) string {
		var tries atomic.Int32
		return target(t, func(w http.ResponseWriter, r *http.Request) {
			if tries.Add(1) <= n {
				for i := 0; i+1 < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(code)
			}
		}) + "/tok"
	}
	tests := []struct {
		name     string
		url      string
		status   Status
		attempts int
		err      string
	}{
		{"none by default", failing(1, 500), Failed, 1, "500"},
		{"twice", failing(2, 500) + "?retry=2&wait=0", Delivered, 3, ""},
		{"used up", failing(9, 500) + "?retry=2&wait=0", Failed, 3, "500"},
		{"429 that says when", failing(2, 429, "Retry-After", "0.01"), Delivered, 3, ""},
		{"503 that says when", failing(1, 503, "Retry-After", "0"), Delivered, 2, ""},
		{"429 that does not", failing(1, 429), Failed, 1, "429"},
		{"too late", failing(1, 429, "Retry-After", "60"), Failed, 1, "after the timeout"},
		{"panic", failing(0, 200) + "?mode=panic&retry=3&wait=0", Failed, 1, "internal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := send(t, newTestSender(t), hello, Options{Timeout: 5 * time.Second}, tt.url).Results[0]
			if r.Status != tt.status || r.Attempts != tt.attempts {
				t.Errorf("%s after %d attempts (%v), want %s after %d", r.Status, r.Attempts, r.Err, tt.status, tt.attempts)
			}
			if tt.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tt.err)) {
				t.Errorf("error %v, want %s", r.Err, tt.err)
			}
		})
	}
}

// A retry repeats only what has not arrived.
func TestRetryOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		if (r.URL.Path == "/b" || r.URL.Path == "/send") && seen[r.URL.Path] == 1 {
			w.WriteHeader(500)
		}
	})
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to=a,b,c&retry=1&wait=0", base+"/tok?mode=once&retry=1&wait=0")
	if !report.OK() {
		t.Fatal(report.Results)
	}
	if want := (map[string]int{"/a": 1, "/b": 2, "/c": 1, "/upload": 1, "/send": 2}); fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}

func TestOptional(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?optional=yes")
	if report.Results[0].Status != Failed || !report.OK() {
		t.Errorf("%+v", report.Results[0])
	}
}

// A client that hangs up does not cut off a send.
func TestSendOutlivesItsContext(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(started)
		select {
		case <-goOn:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
	s := newTestSender(t)
	d, err := s.Parse(base+"/tok", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel(); close(goOn) }()
	if report := s.Send(ctx, hello, []Target{{Destination: d}}, Options{}); !report.OK() {
		t.Errorf("%+v", report.Results[0])
	}
}

// The same URL is the same destination, so that what it keeps is of use; but
// one that a client brought never shares with one of the operator's.
func TestParseCache(t *testing.T) {
	s := newTestSender(t)
	guard, _ := egress.NewPolicy(nil, nil)
	same, _ := egress.NewPolicy(nil, nil)
	a, _ := s.Parse("probe://h/tok", nil)
	b, _ := s.Parse("probe://h/tok", nil)
	c, _ := s.Parse("probe://h/tok", guard)
	d, _ := s.Parse("probe://h/tok", same)
	e, _ := s.Parse("probe://h/tok", &egress.Policy{})
	if a != b || a == c || c != d || a == e {
		t.Error(a == b, a == c, c == d, a == e)
	}
}

// A destination is closed when the last configuration that has it gives it
// back, and not before; the next one is new.
func TestRelease(t *testing.T) {
	s := newTestSender(t)
	a, _ := s.Parse("probe://h/tok", nil)
	b, _ := s.Parse("probe://h/tok", nil)
	closed := &a.service.(*probe).closed
	s.Release(a)
	if closed.Load() != 0 {
		t.Error("closed though it is in use")
	}
	s.Release(b)
	s.Release(b) // once too often
	if closed.Load() != 1 {
		t.Errorf("closed %d times", closed.Load())
	}
	if c, _ := s.Parse("probe://h/tok", nil); c == a {
		t.Error("a destination that was closed came back")
	}
	if n := len(s.loaded.by); n != 1 || n != len(s.loaded.ofURL) {
		t.Errorf("%d destinations are held", n)
	}
}

// A client's URL is read once where its service can keep nothing, and anew
// for each message where it can.
func TestParseOnce(t *testing.T) {
	s := newTestSender(t)
	for url, same := range map[string]bool{"plain://h": true, "probe://h/tok": false} {
		a, err := s.ParseOnce(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.ParseOnce(url, nil); (a == b) != same {
			t.Errorf("%s: the same destination: %t, want %t", url, a == b, same)
		}
	}
	for i := range 2 * maxRemembered {
		if _, err := s.ParseOnce(fmt.Sprintf("plain://h%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.once.order.Len(); n != maxRemembered || n != len(s.once.by) {
		t.Errorf("%d destinations are remembered", n)
	}
}

func TestStoreNo(t *testing.T) {
	s := newTestSender(t)
	base := target(t, func(w http.ResponseWriter, r *http.Request) {})
	for _, store := range []string{"yes", "no"} {
		u := base + "/tok?mode=once&store=" + store
		send(t, s, hello, Options{}, u)
		d, _ := s.Parse(u, nil)
		if n := d.service.(*probe).sends.Load(); (n == 0) != (store == "no") {
			t.Errorf("store=%s: the service that is kept has sent %d times", store, n)
		}
	}
}

// Ten destinations read a large file from one copy, whole, and it is gone
// afterwards.
func TestAttachments(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	want := sha256.Sum256(content)
	var good atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		hash := sha256.New()
		_, _ = io.Copy(hash, f)
		if [32]byte(hash.Sum(nil)) == want && h.Filename == "log.bin" {
			good.Add(1)
		}
	})
	dir := t.TempDir()
	spool := &Spool{MaxSize: 10 << 20, MaxCount: 2, Dir: dir}
	a, err := spool.Add("../../log.bin", "", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
	}
	m := *hello
	m.Attachments = []*Attachment{a}
	if report := send(t, newTestSender(t), &m, Options{}, urls...); !report.OK() || good.Load() != 10 {
		t.Errorf("%d of 10 got the file: %v", good.Load(), report.Results)
	}
	if err := spool.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	if _, err := io.ReadAll(a.Open()); err == nil {
		t.Error("the file can be read after Close")
	}
}

func TestSpoolLimits(t *testing.T) {
	spool := &Spool{MaxSize: 2 << 20, MaxCount: 3, Dir: t.TempDir()}
	defer spool.Close()
	for _, size := range []int{0, 2 << 20} {
		a, err := spool.Add("", "", bytes.NewReader(make([]byte, size)))
		if err != nil || a.Size != int64(size) || !strings.HasPrefix(a.Name, "attachment.00") {
			t.Error(a, err)
		}
	}
	if _, err := spool.Add("a", "", bytes.NewReader(make([]byte, 2<<20+1))); !errors.Is(err, ErrAttachmentTooLarge) {
		t.Error(err)
	}
	if _, err := spool.Add("a", "", strings.NewReader("")); !errors.Is(err, ErrTooManyAttachments) {
		t.Error(err)
	}
	small := &Spool{MaxSize: 3, MaxCount: 1}
	if _, err := small.Add("a", "", strings.NewReader("1234")); !errors.Is(err, ErrAttachmentTooLarge) {
		t.Error(err)
	}
}

func TestAttachmentName(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt": "a.txt", "../../etc/passwd": "passwd", `C:\temp\x.log`: "x.log", "": "attachment.007", "..": "attachment.007",
		"a\r\nContent-Type: x": "aContent-Type: x", "a\x00b": "ab", "/": "attachment.007", "\u202egnp.exe": "gnp.exe",
		strings.Repeat("é", 300) + ".png": strings.Repeat("é", 246) + ".png",
	} {
		if got := attachmentName(in, 7); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestAttachmentType(t *testing.T) {
	for _, tt := range []struct{ name, given, data, want string }{
		{"a.png", "", "x", "image/png"}, {"a.png", "application/octet-stream", "x", "image/png"},
		{"a.png", "text/plain; charset=utf-8", "x", "text/plain; charset=utf-8"},
		{"a", "", "\x89PNG\r\n\x1a\n", "image/png"}, {"a", "nonsense", "hello", "text/plain"}, {"a", "", "\x00\x01", "application/octet-stream"},
	} {
		if got := NewAttachment(tt.name, tt.given, []byte(tt.data)).ContentType; got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// A redirect keeps method and body, leaves behind what signs in elsewhere,
// and never goes from TLS to clear text.
func TestRedirects(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", len(body) > 0, " ", r.Header.Get("X-Key")))
	}))
	defer other.Close()
	for code, want := range map[int]string{301: "POST true ", 302: "POST true ", 303: "GET false ", 307: "POST true ", 308: "POST true "} {
		got = nil
		base := target(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/elsewhere", code) })
		s := newTestSender(t)
		r := send(t, s, hello, Options{}, base+"/tok?+X-Key=abc").Results[0]
		if r.Status != Delivered || len(got) != 1 || got[0] != want {
			t.Errorf("%d: %s, %q, %v", code, r.Status, got, r.Err)
		}
		got = nil
		if r := send(t, s, hello, Options{}, base+"/tok?redirect=no").Results[0]; r.Status != Failed || len(got) > 0 {
			t.Errorf("%d with redirect=no: %s, %q", code, r.Status, got)
		}
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, 302) }))
	defer secure.Close()
	s := newTestSender(t)
	u := "probes://" + strings.TrimPrefix(secure.URL, "https://") + "/tok"
	if r := send(t, s, hello, Options{}, u+"?verify=no").Results[0]; r.Err == nil || !strings.Contains(r.Err.Error(), "in the clear") || len(got) > 0 {
		t.Error(r.Err, got)
	}
	if r := send(t, s, hello, Options{}, u).Results[0]; r.Err == nil || !strings.Contains(r.Err.Error(), "certificate") {
		t.Error("a certificate that nobody signed:", r.Err)
	}
}

// What a client brings reaches no private address; a connection that the
// operator's URL has opened to one is of no use to it.
func TestGuard(t *testing.T) {
	var hits atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) { hits.Add(1) })
	s := newTestSender(t)
	if !send(t, s, hello, Options{}, base+"/tok").OK() {
		t.Fatal("the operator's URL")
	}
	guard, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Parse(base+"/tok", guard)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Send(context.Background(), hello, []Target{{Destination: d}}, Options{}).Results[0]
	var e *egress.BlockedError
	if !errors.As(r.Err, &e) || hits.Load() != 1 {
		t.Errorf("%v, %d hits", r.Err, hits.Load())
	}
	spool := &Spool{MaxSize: 1, MaxCount: 1}
	if _, err := spool.Fetch(context.Background(), s.Pool(), guard, "http"+strings.TrimPrefix(base, "probe"), ""); !errors.As(err, &e) {
		t.Error("attachment:", err)
	}
}

func TestRecordsAndLog(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) {})
	bad := target(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	var buf bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(zapcore.AddSync(&buf)), zapcore.DebugLevel))
	report := send(t, newTestSender(t), hello, Options{Logger: log}, base+"/tok-secret", bad+"/tok-secret", base+"/tok-secret?mode=panic")
	levels := map[Level]int{}
	for _, r := range report.Records {
		levels[r.Level]++
	}
	if levels[LevelInfo] != 1 || levels[LevelError] != 2 {
		t.Error(report.Records)
	}
	if got := buf.String(); strings.Contains(got, "tok-secret") || !strings.Contains(got, `"stack":`) || strings.Count(got, "\n") != 3 {
		t.Error(got)
	}
}

func TestFormatsAndLimits(t *testing.T) {
	var bodies []string
	base := target(t, func(w http.ResponseWriter, r *http.Request) { bodies = append(bodies, r.FormValue("body")) })
	s := newTestSender(t)
	m := &Message{Body: "<p>a <b>b</b></p>", Format: HTML}
	for format, want := range map[string]string{"text": "a b", "markdown": "a **b**", "html": m.Body} {
		bodies = nil
		if send(t, s, m, Options{}, base+"/tok?format="+format); len(bodies) != 1 || bodies[0] != want {
			t.Errorf("%s: %q", format, bodies)
		}
	}
	bodies = nil
	long := &Message{Body: strings.Repeat("word ", 500) + ":smile:"}
	send(t, s, long, Options{}, base+"/tok?overflow=split&emojis=yes")
	if len(bodies) != 3 || !strings.HasSuffix(bodies[2], "😄") {
		t.Errorf("%d parts: %q", len(bodies), bodies)
	}
}

// Deliveries beyond the bound wait for room.
func TestConcurrency(t *testing.T) {
	var now, most atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
	})
	s := NewSender(egress.NewPool("test"), 3)
	var urls []string
	for i := range 20 {
		urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
	}
	if report := send(t, s, hello, Options{}, urls...); !report.OK() {
		t.Error(report.Results)
	}
	if most.Load() > 3 {
		t.Errorf("%d at once, want 3 at most", most.Load())
	}
}

func TestCached(t *testing.T) {
	var c Cached[string]
	var fetched atomic.Int32
	fetch := func(context.Context) (string, time.Duration, error) {
		return fmt.Sprint("token", fetched.Add(1)), time.Hour, nil
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := c.Get(context.Background(), fetch); v != "token1" || err != nil {
				t.Error(v, err)
			}
		})
	}
	wg.Wait()
	c.Drop(context.Background())
	if v, _ := c.Get(context.Background(), fetch); v != "token2" {
		t.Error(v)
	}
	var failing Cached[int]
	if _, err := failing.Get(context.Background(), func(context.Context) (int, time.Duration, error) { return 0, 0, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	failing.lock <- struct{}{}
	if _, err := failing.Get(cancelled, nil); err == nil {
		t.Error("waits for ever")
	}
}
