package notifier

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
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
// destinations use at most half of the shared slots.
func TestTransientDestinationsLeaveRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	slow, begun, release := heldTarget(t)
	s := NewSender(egress.NewPool("test"), 16)
	defer s.Close()
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
		t.Error("three of four shared slots went to transient destinations")
	default:
	}
	close(release)
	for range 3 { // including the one that waited
		if r := <-ended; !r.OK() {
			t.Errorf("a client's: %+v", r.Results)
		}
	}
	if n := len(s.slots.transient) + s.slots.shared + s.slots.own + len(s.slots.lines); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

// TestOneMessageLeavesRoom checks that deliveries of one message use at most a
// quarter of the slots for transient destinations.
func TestOneMessageLeavesRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	slow, begun, release := heldTarget(t)
	s := NewSender(egress.NewPool("test"), 64)
	defer s.Close()
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
		s := NewSender(egress.NewPoolWithTransport("test", held), 12)
		defer s.Close()
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

// slowTransport notes when requests begin. Hosts whose names begin with "hangs" do not answer, "new"
// ones answer after eight seconds, and others at once.
type slowTransport struct {
	mu    sync.Mutex
	begun map[string][]time.Time
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.begun[r.URL.Host] = append(s.begun[r.URL.Host], time.Now())
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Host, "hangs") {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if strings.HasPrefix(r.URL.Host, "new") {
		time.Sleep(8 * time.Second)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestFirstDelivery checks that the first delivery to a destination of the operator begins within a
// second, however many others hang, and that one that answers slowly gets it once. Many messages at
// once to a destination that answers arrive, too.
func TestFirstDelivery(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		destinations, atOnce int
		messages             int  // that each message of the test stands for
		transient, limited   bool // whose the hanging destinations are
		besides              int  // hanging destinations of the message to a new one
	}{
		{name: "64 destinations", destinations: 64, atOnce: 1, messages: 40},
		{name: "2000 destinations", destinations: 2000, atOnce: 1, messages: 2},
		{name: "2000 destinations of each message", destinations: 2000, atOnce: 2000, messages: 3},
		{name: "2000 destinations of clients", destinations: 2000, atOnce: 1, messages: 1, transient: true, limited: true},
		{name: "2000 saved destinations", destinations: 2000, atOnce: 1, messages: 1, limited: true},
		{name: "of the same message", destinations: 2000, atOnce: 1, messages: 1, besides: 2000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &slowTransport{begun: map[string][]time.Time{}}
				s := NewSender(egress.NewPoolWithTransport("test", transport), 0)
				defer s.Close()
				var all []Target
				add := func(url string) {
					d, err := Parse(url, nil)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, Target{Destination: d})
				}
				for i := range tt.destinations {
					add(fmt.Sprintf("probe://hangs%d/token", i))
				}
				o := Options{Transient: tt.transient}
				if tt.limited {
					o.Limits = &Limits{Requests: 10_000, Bytes: 1 << 30}
				}
				hanging := slices.Clone(all)
				var ended sync.WaitGroup
				hang := func() {
					for some := range slices.Chunk(hanging, tt.atOnce) {
						for range tt.messages {
							ended.Go(func() { s.Send(t.Context(), hello, some, o) })
						}
					}
				}
				add("probe://good/token")
				good := all[tt.destinations:]
				sent := map[string]time.Time{}
				for i, pause := range []time.Duration{0, time.Second, 5 * time.Second, 25 * time.Second, time.Minute} {
					hang()
					synctest.Wait()
					time.Sleep(pause)
					add(fmt.Sprintf("probe://new%d/token", i))
					sent[fmt.Sprintf("new%d", i)] = time.Now()
					targets := slices.Concat(hanging[:tt.besides], all[len(all)-1:])
					ended.Go(func() {
						if r := s.Send(t.Context(), hello, targets, Options{}).Results[tt.besides]; r.Err != nil || r.Attempts != 1 {
							t.Errorf("message %d: %+v", i, r)
						}
					})
				}
				for range 100 {
					ended.Go(func() {
						if r := s.Send(t.Context(), hello, good, Options{}); !r.OK() {
							t.Errorf("to a destination that answers: %+v", r.Results)
						}
					})
				}
				ended.Wait()
				for host, at := range sent {
					if begun := transport.begun[host]; len(begun) != 1 || begun[0].Sub(at) >= time.Second {
						t.Errorf("the message to %s at %s was sent at %s", host, at, begun)
					}
				}
			})
		})
	}
}

// TestHangingDestinationIsBack checks that a destination that has hung waits for a shared slot, and has
// a slot of its own again when it has answered.
func TestHangingDestinationIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &slowTransport{begun: map[string][]time.Time{}}
		s := NewSender(egress.NewPoolWithTransport("test", transport), 8) // two of them are shared
		defer s.Close()
		parse := func(url string) []Target {
			d, err := Parse(url, nil)
			if err != nil {
				t.Fatal(err)
			}
			return []Target{{Destination: d}}
		}
		hangs, back := parse("probe://hangs/token"), parse("probe://back/token")
		back[0].noteHanging(true)
		var ended sync.WaitGroup
		for range 3 { // one has the destination's own slot
			ended.Go(func() { s.Send(t.Context(), hello, hangs, Options{Timeout: time.Minute}) })
		}
		synctest.Wait()
		send := func(want, timeout time.Duration) {
			t.Helper()
			began := time.Now()
			r := s.Send(t.Context(), hello, back, Options{Timeout: timeout})
			if took := time.Since(began); took != want || r.OK() != (want < timeout) {
				t.Errorf("after %s, want %s: %+v", took, want, r.Results)
			}
		}
		send(10*time.Second, 10*time.Second)
		send(50*time.Second, time.Hour)
		ended.Go(func() { s.Send(t.Context(), hello, slices.Repeat(hangs, 3), Options{}) })
		synctest.Wait()
		send(0, time.Hour)
		ended.Wait()
		if n := s.slots.shared + s.slots.own + len(s.slots.lines); n != 0 {
			t.Errorf("%d slots are still taken", n)
		}
	})
}

// TestMessagesTakeTurns checks that a message to many destinations that share slots lets others have
// every other one.
func TestMessagesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &slowTransport{begun: map[string][]time.Time{}}
		s := NewSender(egress.NewPoolWithTransport("test", transport), 8) // two of them are shared
		defer s.Close()
		saved := Options{Timeout: time.Hour, Limits: &Limits{Requests: 100, Bytes: 1 << 20}}
		var ended sync.WaitGroup
		begin := time.Now()
		send := func(name string, n int) {
			var targets []Target
			for i := range n {
				d, err := Parse(fmt.Sprintf("probe://new-%s%d/token", name, i), nil)
				if err != nil {
					t.Fatal(err)
				}
				targets = append(targets, Target{Destination: d})
			}
			ended.Go(func() {
				if r := s.Send(t.Context(), hello, targets, saved); !r.OK() {
					t.Errorf("%s: %+v", name, r.Results)
				}
			})
			synctest.Wait()
		}
		send("many", 20)
		send("few", 3)
		ended.Wait()
		for host, want := range map[string]time.Duration{
			"new-many2": 8 * time.Second, "new-few0": 8 * time.Second, "new-few1": 16 * time.Second, "new-few2": 24 * time.Second,
			"new-many19": 88 * time.Second,
		} {
			if begun := transport.begun[host]; len(begun) != 1 || begun[0].Sub(begin) != want {
				t.Errorf("the message to %s was sent at %s, want after %s", host, begun, want)
			}
		}
	})
}
