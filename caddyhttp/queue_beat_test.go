package caddyhttp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
)

// outside is a watchdog that counts its calls.
type outside struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	calls  int
	path   string
	method string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{status: http.StatusOK}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.calls++
		o.path, o.method = r.URL.Path, r.Method
		w.WriteHeader(o.status)
	}))
	o.Config.SetKeepAlivesEnabled(false) // the clock of a bubble stands while a connection is open
	o.Start()
	t.Cleanup(o.Close)
	t.Setenv("WATCHDOG_URL", o.URL+"/ping/s3cret")
	return o
}

// answer sets the status of the answers.
func (o *outside) answer(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = status
}

func (o *outside) called() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// watchdogCalls returns how many calls had an outcome.
func watchdogCalls(t *testing.T, h *Handler, outcome string) int {
	t.Helper()
	var m dto.Metric
	if err := h.shared.Metrics.Queue.Watchdog.WithLabelValues(outcome).Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.GetCounter().GetValue())
}

// newWatchedGateway starts a gateway that calls $WATCHDOG_URL each second. log gets its
// log, if it is not nil.
func newWatchedGateway(t *testing.T, dir, maxAge, key string, log zapcore.WriteSyncer) *Handler {
	t.Helper()
	h := newGateway(t, "", "queue {\npath "+dir+"\nmax_age "+maxAge+"\nwait 10ms\nbeat {env.WATCHDOG_URL} 1s\n}\n"+key)
	if log != nil {
		h.app.gateway.Engine.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.InfoLevel))
	}
	startApp(t, h)
	return h
}

// TestWatchdog checks that the gateway calls the watchdog again and again, that a failure
// is counted and logged once without the address, and that it goes on after it.
func TestWatchdog(t *testing.T) {
	o, dir := newOutside(t), t.TempDir()
	log := new(lockedWriter)
	inBubble(t, func(t *testing.T) {
		h := newWatchedGateway(t, dir, "1h", "", zapcore.AddSync(log))
		caddyhttptest.Eventually(t, func() bool { return o.called() >= 2 && watchdogCalls(t, h, "ok") >= 2 })
		o.mu.Lock()
		if o.path != "/ping/s3cret" || o.method != http.MethodGet {
			t.Errorf("%s %s", o.method, o.path)
		}
		o.mu.Unlock()
		o.answer(http.StatusInternalServerError)
		caddyhttptest.Eventually(t, func() bool { return watchdogCalls(t, h, "failed") >= 2 })
		o.answer(http.StatusOK)
		before := watchdogCalls(t, h, "ok")
		caddyhttptest.Eventually(t, func() bool { return watchdogCalls(t, h, "ok") > before })
		o.Close()
		fails := watchdogCalls(t, h, "failed")
		caddyhttptest.Eventually(t, func() bool { return watchdogCalls(t, h, "failed") > fails })
		stopApp(t, h)
	})
	text := log.text()
	if strings.Contains(text, "s3cret") || strings.Count(text, "the watchdog answers with status 500") != 1 || strings.Count(text, "is told again") != 1 || !strings.Contains(text, "the watchdog cannot be called") {
		t.Errorf("the log is %s", text)
	}
}

// lockedWriter collects a log.
type lockedWriter struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *lockedWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

// TestWatchdogWithheld checks that the watchdog is not called while a delivery has waited
// for more than half of max_age, and is called again when it has arrived.
func TestWatchdogWithheld(t *testing.T) {
	o, p, dir := newOutside(t), newPager(t, http.StatusServiceUnavailable), t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newWatchedGateway(t, dir, "8s", "key k {\nurl "+p.NotifyURL()+"?retry=0\n}\nkey held {\nurl "+p.NotifyURL()+"held\ndigest 1h\n}", nil)
		caddyhttptest.Eventually(t, func() bool { return o.called() >= 1 })
		postWith(t, h, "/notify/held", "body=y") // what a rule holds does not wait in this sense
		postWith(t, h, "/notify/k", "body=x")
		caddyhttptest.Eventually(t, func() bool { return watchdogCalls(t, h, "withheld") >= 1 })
		p.answer(http.StatusOK)
		called := o.called()
		caddyhttptest.Eventually(t, func() bool { return o.called() > called })
	})
}

// TestWatchdogMistakes checks that the configuration is refused.
func TestWatchdogMistakes(t *testing.T) {
	t.Setenv("WATCHDOG_URL", "ftp://host/s3cret")
	for line, want := range map[string]string{
		"beat https://host":            "wrong number of arguments; expected beat <url> <interval>",
		"beat https://host x":          "beat: it must be a duration above 0",
		"beat https://host 1ms":        "queue: beat: the interval must be from 1s to 24h",
		"beat https://host 2d":         "queue: beat: the interval must be from 1s to 24h",
		"beat ftp://host/s3cret 1m":    "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat {env.WATCHDOG_URL} 1m":   "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat https:///s3cret 1m":      "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat https://h%zz/s3cret 1m":  "queue: beat: the address must begin with http:// or https:// and have a host",
		"beat {file./no/s3cret/at} 1m": "queue: ",
	} {
		_, err := loadCaddyfile(t, withOptions("queue {\npath "+t.TempDir()+"\n"+line+"\n}\n"+opsKey, ""))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:") || strings.Contains(err.Error(), "//host/s3cret") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestStoredWatchdog checks that what earlier versions have stored of the watchdog can be
// read, and that this one stores the same.
func TestStoredWatchdog(t *testing.T) {
	const stored = "W\b\x82\x80\xaf\xa2\xdb\xff\xad\x06\x10\x84\x80\xaf\xa2\xdb\xff\xad\x06\x18\x86\x80\xaf\xa2\xdb\xff\xad\x06\"\tno answer"
	at := func(us int64) time.Time { return time.UnixMicro(1_790_000_000_000_000 + us) }
	s := heartbeat.WatchdogState{Next: at(1), Success: at(2), Since: at(3), Problem: "no answer"}
	if got := s.Record().Data; string(got) != stored {
		t.Errorf("it is stored as %q, but queues that exist have %q", got, stored)
	}
	if got := heartbeat.DecodeWatchdog([]byte(stored)); got != s {
		t.Errorf("it is read as %+v", got)
	}
	if got := heartbeat.DecodeWatchdog([]byte(stored[:len(stored)-1])); got != (heartbeat.WatchdogState{}) {
		t.Errorf("a damaged one is read as %+v", got)
	}
}
