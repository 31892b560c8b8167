package outbox_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestFailureLog checks that a destination that is down has few lines in the log.
// 100 messages had 146.
func TestFailureLog(t *testing.T) {
	t.Parallel()
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

// TestFailureLogOfMany checks that thousands of destinations that fail have few lines, and all
// destinations of clients one.
func TestFailureLogOfMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		l := outbox.NewFailureLog(zap.New(core))
		defer l.Close()
		lines := 0
		for i := range 2000 {
			if l.Add(queue.Hash{byte(i), byte(i >> 8), 1}, outbox.DestinationName{}, queue.NewID(), io.EOF) == zapcore.WarnLevel {
				lines++
			}
			if l.Add(queue.Hash{}, outbox.DestinationName{}, queue.NewID(), io.EOF) == zapcore.WarnLevel {
				lines++
			}
		}
		if n := l.Remembered(); n != 2001 {
			t.Errorf("%d destinations", n)
		}
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if n := lines + logs.Len(); n > 2*loglimit.MaxLines+2 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := l.Remembered(); n != 0 {
			t.Errorf("%d destinations are remembered", n)
		}
	})
}

// TestStoredName checks that names of destinations which earlier versions have stored can be
// read, and that this one stores the same.
func TestStoredName(t *testing.T) {
	t.Parallel()
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
