package services

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// pushService stands in for a service: it gets a request and its body, and
// says what to answer.
type pushService func(q *http.Request, body string) (code int, answer string)

func (f pushService) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
	}
	code, answer := f(q, string(body))
	return &http.Response{StatusCode: code, Request: q, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// destination is a URL whose messages go to f, one request at a time; send
// gives what came of one.
func (f pushService) destination(t *testing.T, address string) (send func(*notifier.Message) error) {
	t.Helper()
	var mu sync.Mutex
	one := pushService(func(q *http.Request, body string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		return f(q, body)
	})
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", one), 0)
	d, err := sender.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(m *notifier.Message) error {
		return sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second}).Results[0].Err
	}
}
