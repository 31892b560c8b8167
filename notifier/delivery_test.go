package notifier

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSkip checks that a message with nothing to send to a destination is skipped and not failed,
// and that it is delivered if one of its parts is sent.
func TestSkip(t *testing.T) {
	var arrived atomic.Int32
	url := target(t, func(http.ResponseWriter, *http.Request) { arrived.Add(1) }) + "/tok-secret?mode=skip&overflow=split"
	long := strings.Repeat("words and ", 200)
	for _, tt := range []struct {
		body string
		want Status
		sent int32
	}{
		{"hello", Skipped, 0},
		{long, Skipped, 0},
		{long + " wanted", Delivered, 1},
		{"wanted", Delivered, 1},
	} {
		arrived.Store(0)
		report := send(t, newTestSender(t), &Message{Body: tt.body}, Options{}, url)
		if r := report.Results[0]; r.Status != tt.want || r.Err != nil || r.Attempts != 1 || !report.OK() || arrived.Load() != tt.sent {
			t.Errorf("%.20s: %s, %v after %d attempts; %d arrived", tt.body, r.Status, r.Err, r.Attempts, arrived.Load())
		}
		records := fmt.Sprint(report.Records)
		if strings.Contains(records, "Sent ") != (tt.want == Delivered) ||
			tt.want == Skipped && !strings.Contains(records, "WARNING nothing to do for xxxxx") {
			t.Errorf("%.20s: %s", tt.body, records)
		}
	}
}

// TestSendFaults checks that a faulty destination fails with an error that
// names the fault, and delays no other.
func TestSendFaults(t *testing.T) {
	t.Parallel()
	// Without an idle connection, time can pass in a synctest bubble.
	ok := target(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	tests := []struct {
		name, url, want string
		handler         http.HandlerFunc
	}{
		{"panic", "?mode=panic", "internal error", nil},
		{"panic, also at the end", "?mode=panic&store=no", "internal error", nil},
		{"hang", "?mode=hang", "not done within", nil},
		{"deaf to its context", "?mode=deaf", "not done within", nil},
		{"refused", "?port=1", "connecting failed: connection refused", nil},
		{"status", "", "the service answered 403 Forbidden: go away, xxxxx", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			_, _ = io.WriteString(w, "go away,\n tok-secret")
		}},
		{"silence", "", "not done within", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"rto", "?rto=0.05", "no answer within 50ms (rto)", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"huge", "", "longer than 1 MiB", func(w http.ResponseWriter, r *http.Request) {
			block := make([]byte, 64<<10)
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}},
		{"slow", "", "not done within", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}},
		{"no HTTP", "", "malformed HTTP", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(c, "SSH-2.0\r\n\r\n")
			_ = c.Close()
		}},
		{"reset", "", "EOF", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }},
		{"circle", "", "more than 5 redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", 302) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T, base string) {
				s := newTestSender(t)
				report := send(t, s, hello, Options{Timeout: 300 * time.Millisecond}, ok+"/tok-good", base+"/tok-secret"+tt.url)
				if r := report.Results[0]; r.Status != Delivered || r.Err != nil || r.Attempts != 1 {
					t.Errorf("the other destination: %+v", r)
				}
				r := report.Results[1]
				if r.Status != Failed || r.Err == nil || !strings.Contains(r.Err.Error(), tt.want) {
					t.Errorf("got %s: %v, want %s", r.Status, r.Err, tt.want)
				}
				if report.OK() {
					t.Error("the report has no failure")
				}
				if all := fmt.Sprint(report.Results, report.Records); strings.Contains(all, "tok-secret") {
					t.Errorf("the token is revealed: %s", all)
				}
			}
			if tt.handler != nil {
				check(t, target(t, tt.handler))
				return
			}
			synctest.Test(t, func(t *testing.T) {
				check(t, ok)
				time.Sleep(time.Hour) // until the goroutine of a deaf service ends
			})
		})
	}
}

// TestDeafService checks that only the caller of [Sender.Send] with one target waits for a service
// that does not return when its time is over: the delivery is made in its goroutine.
func TestDeafService(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(context.Context, *Sender, []Target) *Report
		after time.Duration
	}{
		{"one target", func(ctx context.Context, s *Sender, to []Target) *Report {
			return s.Send(ctx, hello, to, Options{Timeout: time.Second})
		}, time.Minute},
		{"two targets", func(ctx context.Context, s *Sender, to []Target) *Report {
			return s.Send(ctx, hello, append(to, to...), Options{Timeout: time.Second})
		}, time.Second + abandonAfter},
		{"started", func(ctx context.Context, s *Sender, to []Target) *Report {
			return s.Start(ctx, hello, to, Options{Timeout: time.Second}).Wait(nil)
		}, time.Second + abandonAfter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := parseProbe(t, "probe://localhost/tok-secret?mode=deaf")
				began := time.Now()
				r := tt.start(t.Context(), newTestSender(t), []Target{{Destination: d}}).Results[0]
				if took := time.Since(began); took != tt.after || r.Status != Failed {
					t.Errorf("%s after %s, want a failure after %s", r.Status, took, tt.after)
				}
				time.Sleep(time.Hour) // until the goroutine of the service ends
			})
		})
	}
}
