package services

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// sendpulseServer issues tokens that are valid for a number of e-mails each.
type sendpulseServer struct {
	good int

	mu     sync.Mutex
	tokens int
	left   int
	mails  int
}

func (s *sendpulseServer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code, body := 200, `{"result":true}`
	switch {
	case q.URL.Path == "/oauth/access_token":
		s.tokens++
		s.left = s.good
		body = fmt.Sprintf(`{"access_token":"token-%d","expires_in":3600}`, s.tokens)
	case q.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", s.tokens) || s.left == 0:
		code, body = 401, `{"error":"expired"}`
	default:
		s.left--
		s.mails++
	}
	return &http.Response{StatusCode: code, Request: q, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

func TestSendpulseToken(t *testing.T) {
	for _, c := range []struct{ good, tokens, mails int }{
		{100, 1, 3},
		{1, 3, 3}, // a new token after the old one has expired
		{0, 4, 0}, // one new token for each message, then failure
	} {
		server := &sendpulseServer{good: c.good}
		sender := notifier.NewSender(egress.NewPoolWithTransport("test", server), 0)
		d, err := sender.Parse("sendpulse://user@example.com/id1/secret1/to@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		delivered := 0
		for range 3 {
			report := sender.Send(context.Background(), servicetest.Message(t, "plain"), []notifier.Target{{Destination: d}}, notifier.Options{})
			if report.OK() {
				delivered++
			}
		}
		if delivered != c.mails || server.mails != c.mails || server.tokens != c.tokens {
			t.Errorf("tokens valid for %d e-mails: %d messages delivered in %d e-mails with %d tokens, want %d and %d",
				c.good, delivered, server.mails, server.tokens, c.mails, c.tokens)
		}
	}
}
