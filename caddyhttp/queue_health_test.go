package caddyhttp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestFailureLog checks that a destination that is down has few lines in the log.
// 100 messages had 146.
func TestFailureLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		l := outbox.NewFailureLog(zap.New(core))
		defer l.Close()
		id, name := queue.Hash{1}, outbox.DestinationName{Key: "ops", Service: "JSON", URL: "json://h"}
		ids := map[bool]int{}
		fail := func(n int) {
			for range n {
				ids[l.Add(id, name, queue.NewID(), errors.New("connection refused")) == zapcore.WarnLevel]++
			}
		}
		want := func(text string, failures int64, named int) {
			t.Helper()
			all := logs.TakeAll()
			if text == "" && len(all) == 0 {
				return
			}
			if len(all) != 1 || all[0].Message != text {
				t.Fatalf("%v, want %q", all, text)
			}
			fields := all[0].ContextMap()
			messages, _ := fields["ids"].([]any)
			if fields["failures"] != failures || len(messages) != named || fields["key"] != "ops" || fields["destination"] != "json://h" {
				t.Errorf("fields %v", fields)
			}
		}
		fail(100)
		if ids[true] != 1 || ids[false] != 99 {
			t.Errorf("%v lines of their own", ids)
		}
		want("", 0, 0)
		l.Down(id, name)
		fail(3)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want("destination is still down", 3, 3)
		time.Sleep(time.Hour)
		want("", 0, 0)
		fail(50)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want("destination is still down", 50, 0)
		l.Up(id)
		time.Sleep(time.Hour)
		want("", 0, 0)
		fail(2)
		if ids[true] != 2 {
			t.Error("the first failure after a success has no line")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want("deliveries fail and are tried again", 1, 1)
	})
}

// TestFailureLogOfMany checks that thousands of destinations that fail have few
// lines, and those of clients one.
func TestFailureLogOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		l := outbox.NewFailureLog(zap.New(core))
		defer l.Close()
		remembered := func() int {
			l.Mu.Lock()
			defer l.Mu.Unlock()
			return len(l.All)
		}
		lines := 0
		for i := range 2000 {
			if l.Add(queue.Hash{byte(i), byte(i >> 8), 1}, outbox.DestinationName{}, queue.NewID(), io.EOF) == zapcore.WarnLevel {
				lines++
			}
			if l.Add(queue.Hash{}, outbox.DestinationName{}, queue.NewID(), io.EOF) == zapcore.WarnLevel {
				lines++
			}
		}
		if n := remembered(); n != 2001 {
			t.Errorf("%d destinations", n)
		}
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if n := lines + logs.Len(); n > 2*loglimit.MaxLines+2 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := remembered(); n != 0 {
			t.Errorf("%d destinations are remembered", n)
		}
	})
}

// TestDestinations checks what people see of a destination that is down and comes
// back: events, metrics, the admin API.
func TestDestinations(t *testing.T) {
	p, good, watch := newPager(t, http.StatusServiceUnavailable), newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	caddyhttptest.Serve(t, `
	notify {
		queue {
			path "`+t.TempDir()+`"
		}
		key k {
			url json://user:secretsecret@`+strings.TrimPrefix(p.URL, "http://")+`/
		}
		key g {
			url `+good.NotifyURL()+`
		}
		key w {
			url `+watch.NotifyURL()+`
		}
	}
	events {
		on notify_down notify w
		on notify_up notify w
	}`, "")
	t.Cleanup(func() { caddyhttptest.Serve(t, "", "") })
	post := func(key string) {
		t.Helper()
		resp, err := caddyhttptest.Client.Post(caddyhttptest.Server+"/prefix/notify/"+key, typeForm, strings.NewReader("body=confidential"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	list := func() (all admin.Destinations) {
		t.Helper()
		status, text := ask(t, "GET", "/notify/destinations", "")
		if err := json.Unmarshal([]byte(text), &all); status != 200 || err != nil || strings.Contains(text, "secretsecret") {
			t.Fatalf("status %d, %v\n%s", status, err, text)
		}
		return all
	}
	if all := list(); len(all.Destinations) != 3 || all.Destinations[0].State != metrics.StateUnknown {
		t.Errorf("before the first message: %+v", all)
	}
	post("g")
	for range 3 {
		post("k")
	}
	caddyhttptest.Eventually(t, func() bool { return watch.count() == 1 })
	watch.mu.Lock()
	if a := watch.got[0]; a.Title != "Destination down (key k)" || !strings.Contains(a.Message, "503") || !strings.Contains(a.Message, "Service: JSON") || strings.Contains(a.Message, "secretsecret") {
		t.Errorf("told %+v", a)
	}
	watch.mu.Unlock()
	caddyhttptest.Eventually(t, func() bool { all := list(); return all.Down == 1 && all.Destinations[0].Waiting == 3 })
	d := list().Destinations[0]
	if d.State != metrics.StateDown || len(d.Keys) != 1 || d.Keys[0] != "k" || d.FailingSince.IsZero() || d.WaitingSince.IsZero() || !strings.Contains(d.LastError, "503") || d.Service != "JSON" {
		t.Errorf("%+v", d)
	}
	if last := list().Destinations[2]; last.State != metrics.StateKnown || last.LastSuccess.IsZero() {
		t.Errorf("the best: %+v", last)
	}
	if status, text := ask(t, "GET", "/notify/keys/k", ""); status != 200 || !strings.Contains(text, `"state":"down"`) || !strings.Contains(text, `"waiting":3`) {
		t.Errorf("the key: status %d %s", status, text)
	}
	if _, text := ask(t, "GET", "/metrics", ""); !strings.Contains(text, "\n"+`caddy_notify_destinations{state="down"} 1`) {
		t.Error("the metric is missing")
	}
	p.answer(http.StatusOK)
	if status, text := ask(t, "POST", "/notify/destinations/"+d.ID+"/retry", ""); status != 200 || text != `{"deliveries":3,"waiting":3,"dead":0}`+"\n" {
		t.Errorf("retry: status %d %s", status, text)
	}
	caddyhttptest.Eventually(t, func() bool { return watch.count() == 2 && list().Down == 0 })
	watch.mu.Lock()
	if a := watch.got[1]; a.Title != "Destination is back (key k)" || !strings.Contains(a.Message, "It was down for") {
		t.Errorf("told %+v", a)
	}
	watch.mu.Unlock()
	// A destination that refuses for good fails for people, too.
	good.answer(http.StatusUnauthorized)
	resp, err := caddyhttptest.Client.Post(caddyhttptest.Server+"/prefix/notify/g", typeForm, strings.NewReader("body=confidential"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if all := list(); all.Failing != 1 || all.Destinations[0].State != metrics.StateFailing || all.Destinations[0].FailingSince.IsZero() || !strings.Contains(all.Destinations[0].LastError, "401") {
		t.Errorf("with a wrong token: %+v", all)
	}
	if _, text := ask(t, "GET", "/metrics", ""); !strings.Contains(text, "\n"+`caddy_notify_destinations{state="failing"} 1`) {
		t.Error("the metric does not count a wrong token")
	}
	if status, _ := ask(t, "POST", "/notify/destinations/x/retry", ""); status != 404 {
		t.Errorf("an unknown destination: status %d", status)
	}
	if status, _ := ask(t, "POST", "/notify/destinations/"+strings.Repeat("A", len(d.ID))+"/retry", ""); status != 404 {
		t.Errorf("another unknown destination: status %d", status)
	}
}

// TestStatus checks what load balancers learn, and that asking often does not write
// often.
func TestStatus(t *testing.T) {
	status := func(h *Handler, method, accept string) reply {
		r := httptest.NewRequest(method, "/notify/status", nil)
		r.Header.Set("Accept", accept)
		return do(t, h, r)
	}
	h := newGateway(t, "", "")
	if got := status(h, "GET", ""); got.status != 200 || got.body != "OK\n" {
		t.Errorf("without a queue: %+v", got)
	}
	if got := status(h, "POST", ""); got.status != 405 {
		t.Errorf("POST: %+v", got)
	}
	h = newQueueGateway(t, t.TempDir(), "", "")
	if got := status(h, "GET", typeJSON); got.status != 200 || got.body != `{"status":"OK"}`+"\n" {
		t.Errorf("with a queue: %+v", got)
	}
	q := h.app.gateway.Rooms
	if err := q.Outbox.Queue.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { // the queue cannot be closed again
		_, _ = h.app.Stop(), h.app.Cleanup()
		h.app.gateway.Rooms, h.app.gateway.Engine.Outbox = nil, nil
	}()
	if got := status(h, "GET", ""); got.status != 200 {
		t.Errorf("the result is not used again: %+v", got)
	}
	q.Outbox.Writes.Mu.Lock()
	q.Outbox.Writes.At = time.Time{}
	q.Outbox.Writes.Mu.Unlock()
	got := status(h, "GET", typeJSON)
	if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"status":"unavailable","error":"the queue cannot be written`) {
		t.Errorf("with a broken queue: %+v", got)
	}
}

// TestStoredName checks that names of destinations which earlier versions have stored can be
// read, and that this one stores the same.
func TestStoredName(t *testing.T) {
	const stored = "\n\x03ops\x12\x04JSON\x1a\bjson://h"
	name := outbox.DestinationName{Key: "ops", Service: "JSON", URL: "json://h"}
	if got := name.Encode(); got != stored {
		t.Errorf("it is stored as %q, but queues that exist have %q", got, stored)
	}
	if got := outbox.DecodeName(stored); got != name {
		t.Errorf("it is read as %+v", got)
	}
	if got := outbox.DecodeName(stored[:len(stored)-1]); got != (outbox.DestinationName{Key: "ops", Service: "JSON", URL: ""}) {
		t.Errorf("a damaged one is read as %+v", got)
	}
}
