package logdigest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// TestBatch checks that many entries are sent as few messages, whose numbers of
// entries add up, and that the first is sent after a second.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type message struct {
			at    time.Duration
			count int
		}
		start := time.Now()
		var got []message
		b := Batch{Kinds: 3, Interval: time.Minute, Ready: func(int) bool { return true }, Send: func(d *Digest) {
			n := entriesOf(d.Body())
			if n != d.count {
				t.Errorf("the message has %d of %d entries:\n%s", n, d.count, d.Body())
			}
			got = append(got, message{time.Since(start), n})
		}}
		write := func(n int) {
			for i := range n {
				b.Add(Entry{Time: time.Now(), Level: zap.ErrorLevel, Logger: "x", Message: fmt.Sprint("no ", i%5)})
			}
		}
		write(1)
		time.Sleep(500 * time.Millisecond)
		write(2)
		for range 100 { // 1000 entries a second
			time.Sleep(time.Second)
			synctest.Wait()
			write(1000)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		write(1)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []message{
			{time.Second, 3},
			{61 * time.Second, 60_000},
			{121 * time.Second, 40_000},
			{500*time.Millisecond + 100*time.Second + time.Hour + time.Second, 1},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestBatchNotReady checks that entries wait until the batch is ready, and that
// Flush sends at once.
func TestBatchNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready atomic.Bool
		var sent, asked atomic.Int32
		b := Batch{
			Kinds: 1, Interval: time.Minute,
			Ready: func(attempts int) bool { asked.Store(int32(attempts)); return ready.Load() },
			Send:  func(d *Digest) { sent.Add(int32(d.count)) },
		}
		b.Flush()
		b.Add(Entry{})
		time.Sleep(10 * time.Second)
		b.Add(Entry{})
		if synctest.Wait(); sent.Load() != 0 || asked.Load() < 2 {
			t.Errorf("%d sent, asked %d times", sent.Load(), asked.Load())
		}
		ready.Store(true)
		time.Sleep(10 * time.Second)
		if synctest.Wait(); sent.Load() != 2 {
			t.Errorf("%d sent, want 2", sent.Load())
		}
		b.Add(Entry{})
		b.Flush()
		if sent.Load() != 3 {
			t.Errorf("%d sent, want 3", sent.Load())
		}
		time.Sleep(time.Hour) // a timer that was left would send again
	})
}

// TestTake checks that Take returns the entries that could not be sent, once.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Batch{Kinds: 1, Interval: time.Minute, Ready: func(int) bool { return false }, Send: func(*Digest) { t.Error("sent") }}
		b.Add(Entry{Message: "x"})
		time.Sleep(10 * time.Second)
		b.Flush()
		if d := b.Take(); d == nil || d.count != 1 {
			t.Errorf("taken: %+v", d)
		}
		if d := b.Take(); d != nil {
			t.Errorf("taken again: %+v", d)
		}
	})
}
