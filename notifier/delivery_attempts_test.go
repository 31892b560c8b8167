package notifier

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	failing := func(n int32, code int, header ...string) string {
		var tries atomic.Int32
		return target(t, func(w http.ResponseWriter, r *http.Request) {
			if tries.Add(1) <= n {
				for i := 0; i+1 < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(code)
			}
		}) + "/tok"
	}
	tests := []struct {
		name     string
		url      string
		status   Status
		attempts int
		err      string
	}{
		{"none by default", failing(1, 500), Failed, 1, "500"},
		{"twice", failing(2, 500) + "?retry=2&wait=0", Delivered, 3, ""},
		{"used up", failing(9, 500) + "?retry=2&wait=0", Failed, 3, "500"},
		{"429 that says when", failing(2, 429, "Retry-After", "0.01"), Delivered, 3, ""},
		{"503 that says when", failing(1, 503, "Retry-After", "0"), Delivered, 2, ""},
		{"429 that does not", failing(1, 429), Failed, 1, "429"},
		{"too late", failing(1, 429, "Retry-After", "60"), Failed, 1, "after the timeout"},
		{"panic", failing(0, 200) + "?mode=panic&retry=3&wait=0", Failed, 1, "internal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := send(t, newTestSender(t), hello, Options{Timeout: 5 * time.Second}, tt.url).Results[0]
			if r.Status != tt.status || r.Attempts != tt.attempts {
				t.Errorf("%s after %d attempts (%v), want %s after %d", r.Status, r.Attempts, r.Err, tt.status, tt.attempts)
			}
			if tt.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tt.err)) {
				t.Errorf("error %v, want %s", r.Err, tt.err)
			}
		})
	}
}

// TestRetryOnce checks that another attempt repeats only what has not arrived.
func TestRetryOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		if (r.URL.Path == "/b" || r.URL.Path == "/send") && seen[r.URL.Path] == 1 {
			w.WriteHeader(500)
		}
	})
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to=a,b,c&retry=1&wait=0", base+"/tok?mode=once&retry=1&wait=0")
	if !report.OK() {
		t.Fatal(report.Results)
	}
	if want := (map[string]int{"/a": 1, "/b": 2, "/c": 1, "/upload": 1, "/send": 2}); fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}

// TestAskedToWait checks that the longest time counts if several answers ask to
// wait.
func TestAskedToWait(t *testing.T) {
	var chats sync.Map
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		_, again := chats.LoadOrStore(r.URL.Path, true)
		switch {
		case r.URL.Path == "/b" && !again:
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(429)
		case r.URL.Path == "/a":
			w.WriteHeader(403)
		}
	})
	report := send(t, newTestSender(t), hello, Options{}, base+"/tok?mode=each&to=a,b")
	if r := report.Results[0]; r.Attempts != 2 ||
		!strings.Contains(fmt.Sprint(r.Err), "target 1 of 2: the service answered 403") ||
		strings.Contains(fmt.Sprint(r.Err), "429") {
		t.Errorf("%d attempts: %v", r.Attempts, r.Err)
	}
}

// TestPartsAreWaitedFor checks that a destination that accepts a few parts at a
// time gets each part once, even if it asks to wait more often than is allowed
// for one part.
func TestPartsAreWaitedFor(t *testing.T) {
	var mu sync.Mutex
	var got []string
	n := 0
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 0 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		got = append(got, r.FormValue("body")[:2])
	})
	var body, want strings.Builder
	for i := range 30 {
		fmt.Fprintf(&body, "%02d%s", i, strings.Repeat("x", 998))
		fmt.Fprintf(&want, "%02d ", i)
	}
	report := send(t, newTestSender(t), &Message{Body: body.String()}, Options{}, base+"/tok?overflow=split")
	if r := report.Results[0]; r.Err != nil || strings.Join(got, " ")+" " != want.String() {
		t.Errorf("%v; arrived: %v", r.Err, got)
	}
	if n > 2*30 {
		t.Errorf("%d requests for 30 parts", n)
	}
}

// TestHeld checks that no attempt is made when the caller no longer holds the message, and that the
// delivery has then failed temporarily.
func TestHeld(t *testing.T) {
	for _, tt := range []struct {
		name     string
		held     int // how often the caller holds the message
		attempts int
	}{{"before the first", 0, 0}, {"before another one", 1, 1}, {"always", 3, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			url := target(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(500)
			}) + "/tok?retry=2&wait=0"
			asked := 0
			held := func() error {
				if asked++; asked > tt.held {
					return errors.New("taken over")
				}
				return nil
			}
			r := send(t, newTestSender(t), hello, Options{Timeout: 5 * time.Second, Held: held}, url).Results[0]
			if r.Status != Failed || !r.Temporary || r.Attempts != tt.attempts || int(requests.Load()) != tt.attempts {
				t.Errorf("%s after %d attempts and %d requests (%v), want %d", r.Status, r.Attempts, requests.Load(), r.Err, tt.attempts)
			}
			if over := tt.held < 3; strings.Contains(r.Err.Error(), "taken over") != over {
				t.Errorf("the error is %v", r.Err)
			}
		})
	}
}

// TestDeadlineWins checks that a passed deadline is seen even if a timer ends at the same time, as
// after a pause of the process. Otherwise another attempt was made in half of the cases.
func TestDeadlineWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			timer := time.NewTimer(time.Second)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			if !isOver(ctx) {
				t.Fatal("the deadline has passed, and is not over")
			}
			cancel()
		}
	})
}
