package heartbeat_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
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
func watchdogCalls(t *testing.T, g *gatewaytest.Gateway, outcome string) int {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := r.Register(g.Process.Metrics.Queue.Watchdog.WithLabelValues(outcome)); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	return int(families[0].GetMetric()[0].GetCounter().GetValue())
}

// watchdog returns the settings with which it is called each second.
func (o *outside) watchdog(t *testing.T) *outbox.Watchdog {
	t.Helper()
	u, err := url.Parse(o.URL + "/ping/s3cret")
	if err != nil {
		t.Fatal(err)
	}
	return &outbox.Watchdog{URL: u, Interval: time.Second}
}

// newWatchedGateway starts a gateway that calls a watchdog each second. log gets its log, if
// it is not nil.
func newWatchedGateway(t *testing.T, dir string, o *outside, maxAge time.Duration, log zapcore.WriteSyncer,
	keys ...site.KeyOptions,
) *gatewaytest.Gateway {
	t.Helper()
	options := gatewaytest.Options{
		Global: site.Options{Keys: keys},
		Queue:  &outbox.Settings{Path: dir, MaxAge: maxAge, Wait: 10 * time.Millisecond, Watchdog: o.watchdog(t)},
	}
	if log != nil {
		options.Log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.InfoLevel))
	}
	return gatewaytest.New(t, options)
}

// TestWatchdog checks that the gateway calls the watchdog again and again, that a failure
// is counted and logged once without the address, and that it goes on after it.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	o, dir := newOutside(t), t.TempDir()
	log := new(lockedWriter)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newWatchedGateway(t, dir, o, time.Hour, zapcore.AddSync(log))
		gatewaytest.Eventually(t, func() bool { return o.called() >= 2 && watchdogCalls(t, g, "ok") >= 2 })
		o.mu.Lock()
		if o.path != "/ping/s3cret" || o.method != http.MethodGet {
			t.Errorf("%s %s", o.method, o.path)
		}
		o.mu.Unlock()
		o.answer(http.StatusInternalServerError)
		gatewaytest.Eventually(t, func() bool { return watchdogCalls(t, g, "failed") >= 2 })
		o.answer(http.StatusOK)
		before := watchdogCalls(t, g, "ok")
		gatewaytest.Eventually(t, func() bool { return watchdogCalls(t, g, "ok") > before })
		o.Close()
		fails := watchdogCalls(t, g, "failed")
		gatewaytest.Eventually(t, func() bool { return watchdogCalls(t, g, "failed") > fails })
		g.Stop()
	})
	text := log.text()
	if strings.Contains(text, "s3cret") || strings.Count(text, "the watchdog answers with status 500") != 1 ||
		strings.Count(text, "is told again") != 1 || !strings.Contains(text, "the watchdog cannot be called") {
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
	t.Parallel()
	o, p, dir := newOutside(t), gatewaytest.NewPager(t, http.StatusServiceUnavailable), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		held := gatewaytest.Key("held", p.NotifyURL()+"held")
		held.Rules = &rules.Rules{Digest: &rules.Digest{Every: time.Hour}}
		g := newWatchedGateway(t, dir, o, 8*time.Second, nil, gatewaytest.Key("k", p.NotifyURL()+"?retry=0"), held)
		gatewaytest.Eventually(t, func() bool { return o.called() >= 1 })
		g.PostForm("/notify/held", "body=y") // what a rule holds does not wait in this sense
		g.PostForm("/notify/k", "body=x")
		gatewaytest.Eventually(t, func() bool { return watchdogCalls(t, g, "withheld") >= 1 })
		p.Answer(http.StatusOK)
		called := o.called()
		gatewaytest.Eventually(t, func() bool { return o.called() > called })
	})
}
