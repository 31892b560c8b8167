package caddyhttp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// encoded is an entry as an encoder of zap writes it.
func encoded(t *testing.T, e zapcore.Encoder, level zapcore.Level, logger, message string, fields ...zap.Field) []byte {
	t.Helper()
	b, err := e.EncodeEntry(zapcore.Entry{Level: level, Time: time.Now(), LoggerName: logger, Message: message}, fields)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jsonEncoder() zapcore.Encoder { return zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()) }

func consoleEncoder(colours bool) zapcore.Encoder {
	c := zap.NewDevelopmentEncoderConfig()
	if colours {
		c.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zapcore.NewConsoleEncoder(c)
}

// Entries of the usual encoders are taken apart; of others the text is taken.
func TestReadEntry(t *testing.T) {
	fields := []zap.Field{zap.String("host", "h\nh"), zap.Error(errors.New("no \"route\"")), zap.Int("n", 3), zap.Any("request", map[string]any{"method": "GET", "host": "example.com", "uri": "/x?y", "client_ip": "192.0.2.1", "headers": map[string]any{"Cookie": []string{"secretsecret"}}})}
	for name, encoder := range map[string]zapcore.Encoder{"json": jsonEncoder(), "console": consoleEncoder(false), "colours": consoleEncoder(true)} {
		e := readEntry(encoded(t, encoder, zap.WarnLevel, "tls.obtain", "will retry", fields...), time.Now())
		if e.level != zap.WarnLevel || e.logger != "tls.obtain" || e.message != "will retry" {
			t.Errorf("%s: %+v", name, e)
		}
		if got, want := e.joinFields(1000), `host: h h, error: no "route", n: 3, request: GET example.com/x?y from 192.0.2.1`; got != want {
			t.Errorf("%s: fields %q, want %q", name, got, want)
		}
		e = readEntry(encoded(t, encoder, zap.ErrorLevel, "", "config is\tbad"), time.Now())
		if e.level != zap.ErrorLevel || !strings.HasSuffix(e.message, "bad") || e.joinFields(1000) != "" {
			t.Errorf("%s without logger: %+v", name, e)
		}
	}
	for text, message := range map[string]string{
		"":                           "",
		"\n":                         "",
		"just text\nand a stack":     "just text",
		`{"message":"x","n":1}`:      `{"message":"x","n":1}`,
		`{"level":"error","msg":1`:   `{"level":"error","msg":1`,
		"[]":                         "[]",
		"\xff\xfe":                   "\uFFFD",
		"ERROR":                      "ERROR",
		`{"msg":""}`:                 "",
		`{"msg":"a\nb","level":"x"}`: "a",
	} {
		if e := readEntry([]byte(text), time.Now()); e.message != message || e.level != zap.InfoLevel {
			t.Errorf("%q: %+v, want %q", text, e, message)
		}
	}
}

func FuzzReadEntry(f *testing.F) {
	f.Add([]byte(`{"level":"error","ts":1.5,"logger":"a","msg":"m","request":{"method":"GET","uri":"/"}}`))
	f.Add([]byte("2026/01/02 12:00:00.000\tERROR\ta\tm\t{\"a\":1}\n"))
	f.Add([]byte("\x1b[31mERROR\x1b[0m\tx"))
	f.Add([]byte("{\"msg\":\"a\xff\",\"\xfe\":\"\xfd\"}"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e := readEntry(line, time.Now())
		e.isOwn(line)
		d := newLogDigest(1)
		d.add(e)
		d.add(e)
		if n := len(d.title()) + len(d.body()); n > 16<<10 {
			t.Errorf("the message has %d bytes", n)
		}
		if !utf8.ValidString(d.title()) || !utf8.ValidString(d.body()) {
			t.Errorf("the message is no UTF-8: %q %q", d.title(), d.body())
		}
	})
}

// An entry of the gateway's own is known as such, however it is encoded. It
// would be the cause of the next.
func TestOwnEntries(t *testing.T) {
	renamed := zap.NewProductionEncoderConfig()
	renamed.NameKey = "who"
	for name, encoder := range map[string]zapcore.Encoder{"json": jsonEncoder(), "console": consoleEncoder(false), "colours": consoleEncoder(true), "renamed": zapcore.NewJSONEncoder(renamed)} {
		for logger, own := range map[string]bool{
			"notify": true, "notify.x": true, "http.handlers.notify": true, "events.handlers.notify": true,
			"caddy.logging.writers.notify": true, "admin.api.notify": true,
			"notifyd": false, "http.handlers.notify_me": false, "http.log.error": false, "events": false, "tls": false,
		} {
			line := encoded(t, encoder, zap.ErrorLevel, logger, "delivery failed", zap.String("name", "unhealthy"))
			if e := readEntry(line, time.Now()); e.isOwn(line) != own {
				t.Errorf("%s: an entry of %s counts as own: %v", name, logger, !own)
			}
		}
	}
	line := encoded(t, jsonEncoder(), zap.DebugLevel, "events", "event", zap.String("name", "notify_failed"))
	if e := readEntry(line, time.Now()); !e.isOwn(line) {
		t.Error("Caddy's entry about an event of the gateway does not count as own")
	}
}

var counted = regexp.MustCompile(`^(\d+) entr`)

// stands is how many entries a message stands for.
func stands(t *testing.T, body string) int {
	t.Helper()
	m := counted.FindStringSubmatch(body)
	if m == nil {
		return 1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A storm of entries is a handful of messages, whose counts add up. The first
// goes out soon.
func TestLogBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type message struct {
			at    time.Duration
			count int
		}
		start := time.Now()
		var got []message
		b := logBatch{kinds: 3, interval: time.Minute, ready: func(int) bool { return true }, send: func(d *logDigest) {
			n := stands(t, d.body())
			if n != d.count {
				t.Errorf("the message says %d of %d entries:\n%s", n, d.count, d.body())
			}
			got = append(got, message{time.Since(start), n})
		}}
		write := func(n int) {
			for i := range n {
				b.add(logEntry{time: time.Now(), level: zap.ErrorLevel, logger: "x", message: fmt.Sprint("no ", i%5)})
			}
		}
		write(1)
		time.Sleep(500 * time.Millisecond)
		write(2)
		for range 100 { // 100 seconds of storm
			time.Sleep(time.Second)
			synctest.Wait()
			write(1000)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		write(1)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []message{{time.Second, 3}, {61 * time.Second, 60_000}, {121 * time.Second, 40_000}, {500*time.Millisecond + 100*time.Second + time.Hour + time.Second, 1}}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Entries wait for Caddy to start, and are sent at once when it stops.
func TestLogBatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Bool
		var sent, asked atomic.Int32
		b := logBatch{
			kinds: 1, interval: time.Minute,
			ready: func(waits int) bool { asked.Store(int32(waits)); return ready.Load() },
			send:  func(d *logDigest) { sent.Add(int32(d.count)) },
		}
		b.flush()
		b.add(logEntry{})
		time.Sleep(10 * time.Second)
		b.add(logEntry{})
		if synctest.Wait(); sent.Load() != 0 || asked.Load() < 2 {
			t.Errorf("%d sent, asked %d times", sent.Load(), asked.Load())
		}
		ready.Store(true)
		time.Sleep(10 * time.Second)
		if synctest.Wait(); sent.Load() != 2 {
			t.Errorf("%d sent, want 2", sent.Load())
		}
		b.add(logEntry{})
		b.flush()
		if sent.Load() != 3 {
			t.Errorf("%d sent, want 3", sent.Load())
		}
		time.Sleep(time.Hour) // no timer is left that sends nothing
	})
}

func TestLogLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a logLimiter
		var told []int
		tell := func(n int) { told = append(told, n) }
		for range 5 {
			a.add(1, tell)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		a.add(2, tell)
		time.Sleep(time.Hour)
		synctest.Wait()
		a.add(1, tell)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(told) != "[1 6 1]" {
			t.Errorf("told %v", told)
		}
	})
}

// What a message says of the entries.
func TestLogDigest(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 0, 0, time.Local)
	entry := func(level zapcore.Level, logger, message string, second int) logEntry {
		return logEntry{at.Add(time.Duration(second) * time.Second), level, logger, message, []logField{{"n", strconv.Itoa(second)}}}
	}
	for _, tt := range []struct {
		entries     []logEntry
		title, body string
		kind        notifier.Type
	}{
		{
			[]logEntry{entry(zap.WarnLevel, "tls", "no route", 1)},
			"WARN: no route", "no route\nn: 1\nWARN tls, 2026-03-01 12:30:01", notifier.Warning,
		},
		{
			[]logEntry{entry(zap.InfoLevel, "", "hello", 1), entry(zap.InfoLevel, "", "hello", 2)},
			"INFO, 2 times: hello", "2 entries, all alike:\n\n2 × hello\nthe first with n: 1\nINFO, 2026-03-01 12:30:01 to 12:30:02", notifier.Info,
		},
		{
			[]logEntry{
				entry(zap.WarnLevel, "tls", "no route", 1), entry(zap.ErrorLevel, "http", "no room", 2), entry(zap.ErrorLevel, "tls", "no route", 2),
				entry(zap.ErrorLevel, "dns", "no name", 3), entry(zap.ErrorLevel, "pki", "no name", 3), entry(zap.ErrorLevel, "pki", "no name", 3),
			},
			"ERROR: 6 entries in Caddy's log",
			"6 entries of 4 kinds:\n\n2 × no route\nthe first with n: 1\nERROR tls, 2026-03-01 12:30:01 to 12:30:02\n\n" +
				"no room\nn: 2\nERROR http, 2026-03-01 12:30:02\n\nand 3 entries of other kinds (dns, pki)",
			notifier.Failure,
		},
	} {
		d := newLogDigest(2)
		for _, e := range tt.entries {
			d.add(e)
		}
		if d.title() != tt.title || d.body() != tt.body || d.messageType() != tt.kind {
			t.Errorf("got %q, %s\n%s\nwant %q, %s\n%s", d.title(), d.messageType(), d.body(), tt.title, tt.kind, tt.body)
		}
	}
}

// Whatever is logged, a digest takes bounded memory, and its message too.
func TestLogDigestIsBounded(t *testing.T) {
	d := newLogDigest(maxLogKinds)
	const n = 10_000
	long := strings.Repeat("x", 100_000)
	for i := range n {
		line := fmt.Sprintf(`{"level":"error","logger":"l%d%s","msg":"%d%s","a":"%s","b":{"c":"%s"}}`, i, long[:1000], i, long[:1000+i%1000], long[:1000], long[:1000])
		d.add(readEntry([]byte(line), time.Now()))
	}
	held := 0
	for k, g := range d.kinds {
		held += len(k.logger) + len(k.message) + len(g.fields)
	}
	if len(d.kinds) != maxDigestKinds || len(d.order) != maxDigestKinds || held > 1<<20 {
		t.Errorf("%d kinds, %d in order, %d bytes", len(d.kinds), len(d.order), held)
	}
	body := d.body()
	if stands(t, body) != n || !strings.Contains(body, "of more than 256 kinds") || !strings.Contains(body, fmt.Sprintf("and %d entries of other kinds", n-maxLogKinds)) {
		t.Error(markup.TruncateBytes(body, 300), body[len(body)-300:])
	}
	if len(body) > maxLogKinds*2000 || len(d.title()) > 200 {
		t.Errorf("the message has %d bytes, the title %d", len(body), len(d.title()))
	}
}

// The settings tell writers apart that must not be one.
func TestWriterKey(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range []LogWriter{
		{Recipient: Recipient{Key: "a"}},
		{Recipient: Recipient{Key: "a", Tag: "x"}},
		{Recipient: Recipient{Key: "a"}, Title: "x"},
		{Recipient: Recipient{Key: "a"}, Type: "info"},
		{Recipient: Recipient{Key: "a"}, Interval: 1},
		{Recipient: Recipient{Key: "a"}, Max: 1},
	} {
		seen[w.WriterKey()] = true
	}
	if len(seen) != 6 {
		t.Errorf("the keys are %v", seen)
	}
	w := LogWriter{Recipient: Recipient{Key: "a"}, Title: "secretsecret"}
	if w.String() != "notify a" {
		t.Error(w.String())
	}
}

// logging are global options for a log with errors, which go to the key ops.
// Caddy keeps log writers with equal settings; the interval makes it another.
func logging(url string, interval time.Duration) string {
	return "notify {\nkey ops {\nurl " + url + "\n}\n}\nlog {\noutput notify ops {\ninterval " + interval.String() + "\nmax 2\n}\nlevel ERROR\n}"
}

// anInterval is long, and another one each time.
func anInterval() time.Duration { return time.Hour + time.Duration(rand.IntN(1_000_000_000)) }

// broken is a site that makes a log entry with each request.
const broken = "http://localhost:9080 {\nnotify /notify*\nreverse_proxy 127.0.0.1:1\n}\n"

// A storm of real errors is a handful of messages, none is lost when Caddy
// stops, and a failure to deliver is not the cause of another message.
func TestLogStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	boot(t, logging(s.url("/refuse"), anInterval()), broken)
	const n = 200
	for range n {
		resp, err := http.Get(server + "/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadGateway {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	first := s.arrives(t, "ERROR")
	if status, body := send(t, t.Context(), "/notify/ops", "title=posted&body=x"); status != 424 {
		t.Errorf("status %d: %s", status, body)
	}
	// Caddy waits for what is gathered when no other configuration with the
	// gateway follows.
	boot(t, "", emptySite)
	total, posted := 0, 0
	messages := s.take()
	for _, m := range messages {
		if m.Title == "posted" {
			posted++
			continue
		}
		if m.Type != "failure" || !strings.Contains(m.Message, "connection refused") {
			t.Errorf("got %+v", m)
		}
		total += stands(t, m.Message)
	}
	if total != n || posted != 1 || len(messages) > 1+2 {
		t.Errorf("%d messages stand for %d entries, want %d; the first was %+v", len(messages), total, n, first)
	}
}

// A log writer outlives its configuration, and then uses the new one's keys.
func TestLogWriterAfterReload(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	interval := anInterval()
	boot(t, logging(s.url("/old"), interval), broken)
	boot(t, logging(s.url("/new"), interval), broken)
	resp, err := http.Get(server + "/x")
	for try := 0; err != nil && try < 10; try++ {
		// On a reload Caddy may reset a connection that waits at the old socket.
		resp, err = http.Get(server + "/x")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	boot(t, "", emptySite)
	if got := s.one(t); got.Path != "/new" || !strings.Contains(got.Message, "GET localhost:9080/x") {
		t.Errorf("got %+v", got)
	}
}

// helperConfig names a Caddyfile for the test below.
const helperConfig = "NOTIFY_TEST_CADDYFILE"

// TestCaddy is Caddy, for a test that needs it in a process of its own.
func TestCaddy(t *testing.T) {
	file := os.Getenv(helperConfig)
	if file == "" {
		t.Skip("helps another test")
	}
	os.Args = []string{"caddy", "run", "--config", file, "--adapter", "caddyfile"}
	caddycmd.Main()
}

// caddyWith is a Caddy with this Caddyfile, in a process of its own.
func caddyWith(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestCaddy$")
	c.Env = append(os.Environ(), helperConfig+"="+file)
	return c
}

// When Caddy exits, the message that says so is still sent, and so are entries
// that no message has told of.
func TestExit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := newStation(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	config := "{\nadmin off\npersist_config off\nhttp_port 9081\n" + logging(s.url("/ops"), anInterval()) + "\nevents {\non started notify ops\non stopping notify ops\n}\n}\n" +
		"http://localhost:9081 {\nreverse_proxy 127.0.0.1:1\n}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := caddyWith(t, file)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.arrives(t, "Caddy has started")
	resp, err := http.Get("http://localhost:9081/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, m := range s.take() {
		titles[m.Title] = true
	}
	if !titles["Caddy is stopping"] || len(titles) != 3 {
		t.Errorf("got %v", titles)
	}
}

// A Caddy that cannot start says why, though its log goes to the gateway.
func TestFailedStart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program")
	}
	for name, tt := range map[string]struct{ url, key, want string }{
		"a variable that is not set": {"{env.NOTIFY_TEST_UNSET}", "ops", "key ops, URL 1: {env.NOTIFY_TEST_UNSET} has no value"},
		"a key that does not exist":  {"json://127.0.0.1:1", "nope", "the global option notify has no key nope"},
	} {
		file := filepath.Join(t.TempDir(), "Caddyfile")
		config := "{\nadmin off\npersist_config off\nnotify {\nkey ops {\nurl " + tt.url + "\n}\n}\nlog {\noutput notify " + tt.key + "\nlevel ERROR\n}\n}\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		c := caddyWith(t, file)
		var errs strings.Builder
		c.Stderr = &errs
		if err := c.Run(); err == nil {
			t.Errorf("%s: Caddy has started", name)
		}
		if !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%s: standard error does not say %q:\n%s", name, tt.want, errs.String())
		}
	}
}

// While there is no app, errors go to standard error at once, and what has been
// gathered when the log is closed.
func TestLogWithoutApp(t *testing.T) {
	s, err := newLogSink(LogWriter{Recipient: Recipient{Key: "ops"}, Interval: caddy.Duration(time.Minute), Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	s.stderr = &errs
	write := func(level zapcore.Level, logger, message string) string {
		errs.Reset()
		if _, err := s.Write(encoded(t, jsonEncoder(), level, logger, message)); err != nil {
			t.Fatal(err)
		}
		return errs.String()
	}
	if got := write(zap.WarnLevel, "tls", "will retry"); got != "" {
		t.Errorf("a warning is written at once: %s", got)
	}
	for _, logger := range []string{"tls", "notify"} {
		if got := write(zap.ErrorLevel, logger, "no route"); !strings.Contains(got, `"msg":"no route"`) || strings.Count(got, `"msg"`) != 1 {
			t.Errorf("an error of %s: %s", logger, got)
		}
	}
	errs.Reset()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := errs.String(); !strings.Contains(got, "log output notify ops: 2 entries not sent") || !strings.Contains(got, "will retry") {
		t.Errorf("when it is closed: %s", got)
	}
}

// What nobody will send any more is given up once.
func TestLogBatchDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := logBatch{kinds: 1, interval: time.Minute, ready: func(int) bool { return false }, send: func(*logDigest) { t.Error("sent") }}
		b.add(logEntry{message: "x"})
		time.Sleep(10 * time.Second)
		b.flush()
		if d := b.take(); d == nil || d.count != 1 {
			t.Errorf("dropped %+v", d)
		}
		if d := b.take(); d != nil {
			t.Errorf("dropped again %+v", d)
		}
	})
}
