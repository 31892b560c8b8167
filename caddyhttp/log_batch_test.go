package caddyhttp

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

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
