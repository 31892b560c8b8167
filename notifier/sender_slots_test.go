package notifier

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// heldTarget is a target that sends to begun for each request, and answers when
// release is closed.
func heldTarget(t *testing.T) (url string, begun <-chan struct{}, release chan<- struct{}) {
	t.Helper()
	arrived, closed := make(chan struct{}, 10), make(chan struct{})
	url = target(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-closed
	})
	return url, arrived, closed
}

// TestTransientDestinationsLeaveRoom checks that deliveries to transient
// destinations use at most half of the slots.
func TestTransientDestinationsLeaveRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	slow, begun, release := heldTarget(t)
	s := NewSender(egress.NewPool("test"), 4)
	ended := make(chan *Report)
	for range 3 {
		go func() {
			d, err := Parse(slow+"/token", nil)
			if err != nil {
				t.Error(err)
			}
			ended <- s.Send(context.Background(), hello, []Target{{Destination: d}}, Options{Transient: true})
		}()
	}
	<-begun
	<-begun
	if r := send(t, s, hello, Options{Timeout: 10 * time.Second}, ok+"/token", ok+"/other"); !r.OK() {
		t.Errorf("the operator's: %+v", r.Results)
	}
	select {
	case <-begun:
		t.Error("three of four slots went to transient destinations")
	default:
	}
	close(release)
	for range 3 { // including the one that waited
		if r := <-ended; !r.OK() {
			t.Errorf("a client's: %+v", r.Results)
		}
	}
	if len(s.slots.all)+len(s.slots.transient) != 0 {
		t.Errorf("%d and %d slots are still taken", len(s.slots.all), len(s.slots.transient))
	}
}

// TestOneMessageLeavesRoom checks that deliveries of one message use at most a
// quarter of the slots for transient destinations.
func TestOneMessageLeavesRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	slow, begun, release := heldTarget(t)
	s := NewSender(egress.NewPool("test"), 16)
	to := func(url string, n int) (targets []Target) {
		for range n {
			d, err := Parse(url+"/token", nil)
			if err != nil {
				t.Fatal(err)
			}
			targets = append(targets, Target{Destination: d})
		}
		return targets
	}
	ended := make(chan *Report)
	go func() { ended <- s.Send(context.Background(), hello, to(slow, 10), Options{Transient: true}) }()
	<-begun
	<-begun
	if r := s.Send(t.Context(), hello, to(ok, 5), Options{Transient: true, Timeout: 10 * time.Second}); !r.OK() {
		t.Errorf("another client's: %+v", r.Results)
	}
	select {
	case <-begun:
		t.Error("three of eight slots went to one message")
	default:
	}
	close(release)
	if r := <-ended; !r.OK() { // including those that waited
		t.Errorf("%+v", r.Results)
	}
}

// TestLongTextsTakeTurns checks that as many deliveries of a long text run at
// once as there is memory for, and that all are made.
func TestLongTextsTakeTurns(t *testing.T) {
	long := &Message{Body: strings.Repeat("x", 100<<10)}
	for _, tt := range []struct{ memory, atOnce int }{{0, 1}, {450 << 10, 3}, {10 << 20, 8}} {
		var now, highest atomic.Int32
		base := target(t, func(w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			for m := highest.Load(); n > m && !highest.CompareAndSwap(m, n); m = highest.Load() {
			}
			_, _ = io.Copy(io.Discard, r.Body)
			for deadline := time.Now().Add(time.Minute); int(highest.Load()) < tt.atOnce &&
				time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			}
			now.Add(-1)
		})
		var memory memory.Budget
		allocation := memory.Allocation(int64(tt.memory), false)
		var urls []string
		for i := range 8 {
			urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
		}
		report := send(t, newTestSender(t), long, Options{Memory: &allocation}, urls...)
		if n := highest.Load(); !report.OK() || int(n) != tt.atOnce {
			t.Errorf("with %d bytes: %d at once, want %d: %v", tt.memory, n, tt.atOnce, report.Results)
		}
		if n := memory.Held(); n != 0 {
			t.Errorf("%d bytes are held after the end", n)
		}
	}
}

// heldTransport answers requests when release is closed.
type heldTransport struct{ release chan struct{} }

func (h heldTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-h.release
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestDeliveriesWaitWithoutGoroutine checks that a delivery that waits for a slot
// has no goroutine: a thousand of them had as many stacks.
func TestDeliveriesWaitWithoutGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := heldTransport{make(chan struct{})}
		s := NewSender(egress.NewPoolWithTransport("test", held), 4)
		d, err := Parse("probe://192.0.2.1/token", nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan *Report)
		go func() { ended <- s.Send(t.Context(), hello, slices.Repeat([]Target{{Destination: d}}, 100), Options{}) }()
		synctest.Wait()
		n := 0
		stacks := make([]byte, 4<<20)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "synctest bubble") && strings.Contains(stack, "(*delivery).run(") {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%d goroutines deliver, want 4", n)
		}
		close(held.release)
		if r := <-ended; !r.OK() || len(r.Results) != 100 {
			t.Errorf("%+v", r.Results)
		}
	})
}
