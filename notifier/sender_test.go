package notifier

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// target starts a server and returns the start of a probe URL for it.
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
	s := NewSender(pool, 0)
	t.Cleanup(s.Close)
	return s
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

func TestOptional(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?optional=yes")
	if report.Results[0].Status != Failed || !report.OK() {
		t.Errorf("%+v", report.Results[0])
	}
}

// TestSendOutlivesItsContext checks that Send continues after the end of its
// context.
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

// TestConcurrency checks that deliveries above the limit wait.
func TestConcurrency(t *testing.T) {
	const all, limit = 20, 3
	var now, highest atomic.Int32
	arrived, answer := make(chan struct{}, all), make(chan struct{})
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for m := highest.Load(); n > m && !highest.CompareAndSwap(m, n); m = highest.Load() {
		}
		arrived <- struct{}{}
		<-answer
		now.Add(-1)
	})
	go func() { // answers one request after the other, while as many as may be are under way
		for range limit - 1 {
			<-arrived
		}
		for i := range all {
			if i <= all-limit {
				<-arrived
			}
			answer <- struct{}{}
		}
	}()
	s := NewSender(egress.NewPool("test"), limit)
	defer s.Close()
	var urls []string
	for i := range all {
		urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
	}
	if report := send(t, s, hello, Options{}, urls...); !report.OK() {
		t.Error(report.Results)
	}
	if highest.Load() != limit {
		t.Errorf("%d at once, want %d", highest.Load(), limit)
	}
}

// TestStoreNo checks that with store=no each message uses a new service value.
func TestStoreNo(t *testing.T) {
	s := newTestSender(t)
	base := target(t, func(w http.ResponseWriter, r *http.Request) {})
	for _, store := range []string{"yes", "no"} {
		u := base + "/tok?mode=once&store=" + store
		send(t, s, hello, Options{}, u)
		d, _ := s.Parse(u, nil)
		if n := d.service.(*probe).sends.Load(); (n == 0) != (store == "no") {
			t.Errorf("store=%s: the stored service sent %d times", store, n)
		}
	}
}

func TestRecordsAndLog(t *testing.T) {
	base := target(t, func(w http.ResponseWriter, r *http.Request) {})
	bad := target(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	var buf bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		zapcore.Lock(zapcore.AddSync(&buf)), zapcore.DebugLevel))
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

// TestLogOfRepeatedDeliveries checks that the caller decides the level of the entry of a
// failure that it repeats, that any other failure is an error, and that each entry has
// the ID of the message.
func TestLogOfRepeatedDeliveries(t *testing.T) {
	for _, tt := range []struct {
		status   int
		repeated bool
		want     zapcore.Level
	}{
		{http.StatusInternalServerError, true, zapcore.InfoLevel},
		{http.StatusInternalServerError, false, zapcore.ErrorLevel},
		{http.StatusNotFound, true, zapcore.ErrorLevel},
	} {
		base := target(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(tt.status) })
		core, logs := observer.New(zapcore.DebugLevel)
		o := Options{Logger: zap.New(core), ID: time.Minute}
		if tt.repeated {
			o.Repeated = func(i int, r *Result) zapcore.Level {
				if i != 0 || r.Err == nil {
					t.Errorf("target %d: %+v", i, r)
				}
				return zapcore.InfoLevel
			}
		}
		send(t, newTestSender(t), hello, o, base+"/tok")
		if got := logs.All(); len(got) != 1 || got[0].Level != tt.want || got[0].ContextMap()["id"] != "1m0s" {
			t.Errorf("status %d, repeated %t: %v", tt.status, tt.repeated, got)
		}
	}
}
