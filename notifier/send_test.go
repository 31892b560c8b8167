package notifier_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// station is a destination that answers with a status and counts what it has got.
type station struct {
	*httptest.Server
	url    string // notification URL
	status atomic.Int32
	got    atomic.Int32
	body   atomic.Value // string
}

func newStation(t *testing.T, status int) *station {
	s := &station{}
	s.status.Store(int32(status))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.body.Store(string(body))
		if s.status.Load() == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "60")
		}
		w.WriteHeader(int(s.status.Load()))
		s.got.Add(1)
	}))
	t.Cleanup(s.Close)
	s.url = strings.Replace(s.URL, "http", "json", 1)
	return s
}

var hello = &notifier.Message{Body: "hello"}

func TestSend(t *testing.T) {
	a, b := newStation(t, http.StatusOK), newStation(t, http.StatusNoContent)
	if err := notifier.Send(t.Context(), a.url+", "+b.url, hello); err != nil {
		t.Fatal(err)
	}
	if a.got.Load() != 1 || b.got.Load() != 1 {
		t.Errorf("%d and %d messages arrived, want one at each", a.got.Load(), b.got.Load())
	}
	if hello.Identity != nil || !hello.Time.IsZero() {
		t.Error("the message of the caller was changed")
	}
}

// A message without an identity comes from the program, not from Caddy.
func TestSendIdentity(t *testing.T) {
	s := newStation(t, http.StatusOK)
	chat := strings.Replace(s.URL, "http", "mmost", 1) + "/hook"
	if err := notifier.Send(t.Context(), chat, hello); err != nil {
		t.Fatal(err)
	}
	var sent struct{ Username string }
	if err := json.Unmarshal([]byte(s.body.Load().(string)), &sent); err != nil || sent.Username != "notifier.test" {
		t.Errorf("the sender is %q, want the name of the program (%v)", sent.Username, err)
	}
}

func TestSendError(t *testing.T) {
	ok, busy, gone := newStation(t, http.StatusOK), newStation(t, http.StatusServiceUnavailable), newStation(t, http.StatusNotFound)
	urls := ok.url + " " + busy.url + "/s3cret?retry=0 " + gone.url + "/s3cret"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the time that busy asks for is longer
	defer cancel()
	err := notifier.Send(ctx, urls, hello)
	e, isSend := errors.AsType[*notifier.SendError](err)
	if !isSend || len(e.Results) != 3 {
		t.Fatalf("%#v, want a SendError with three results", err)
	}
	want := "2 of 3 destinations failed: JSON: the service answered 503 Service Unavailable " +
		"(the next attempt, in 1m0s, would be after the timeout); JSON: the service answered 404 Not Found"
	if err.Error() != want {
		t.Errorf("the error is\n%s, want\n%s", err, want)
	}
	if s, found := errors.AsType[*notifier.StatusError](err); !found || s.Code != http.StatusServiceUnavailable {
		t.Errorf("the error wraps %v, want the status 503", s)
	}
	for i, temporary := range []bool{false, true, false} {
		if r := e.Results[i]; r.OK() != (i == 0) || r.Temporary != temporary {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	if !e.Temporary() || e.RetryAfter() != time.Minute {
		t.Errorf("temporary %t, again after %s", e.Temporary(), e.RetryAfter())
	}

	// Another attempt sends to the destination that was busy, and to no other.
	busy.status.Store(http.StatusOK)
	e, isSend = errors.AsType[*notifier.SendError](e.Retry(ctx))
	if !isSend || e.Temporary() || !e.Results[1].OK() || e.Results[2].OK() || e.RetryAfter() != 0 {
		t.Errorf("after the second attempt: %+v", e)
	}
	if ok.got.Load() != 1 || busy.got.Load() != 2 || gone.got.Load() != 1 {
		t.Errorf("%d, %d and %d requests, want 1, 2 and 1", ok.got.Load(), busy.got.Load(), gone.got.Load())
	}
}

// If one URL cannot be used, nothing is sent.
func TestSendNothing(t *testing.T) {
	s := newStation(t, http.StatusOK)
	for _, x := range []struct {
		urls string
		m    *notifier.Message
		want string
	}{
		{s.url + ", jsno://host/s3cret", hello, "target 2 of 2: the URL begins with jsno://, which is not a scheme of any service; " +
			"you may mean json://"},
		{"gotify://host", hello, "Gotify: token"},
		{"", hello, "there is no notification URL; write for example json://example.com"},
		{s.url, nil, "the message is empty; give it a title, a body or an attachment"},
		{s.url, &notifier.Message{Body: " \n"}, "the message is empty"},
	} {
		err := notifier.Send(t.Context(), x.urls, x.m)
		if err == nil || !strings.HasPrefix(err.Error(), x.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", x.urls, err, x.want)
		}
	}
	if n := s.got.Load(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// Send ends with its context, whose error is the cause.
func TestSendStops(t *testing.T) {
	release := make(chan struct{})
	hung := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hung <- struct{}{}; <-release }))
	defer server.Close()
	defer close(release)
	url := strings.Replace(server.URL, "http", "json", 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	if err := notifier.Send(ctx, url, hello); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := notifier.Send(ctx, url, hello); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}

// A sender of its own has the agent and the transport of the program.
func TestSendTo(t *testing.T) {
	var agent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agent.Store(r.UserAgent()) }))
	defer server.Close()
	s := notifier.NewSender(egress.NewPool("backup/1.0"), 1)
	defer s.Close()
	if err := s.SendTo(t.Context(), strings.Replace(server.URL, "http", "json", 1), hello); err != nil || agent.Load() != "backup/1.0" {
		t.Errorf("%v, sent by %v", err, agent.Load())
	}
}
