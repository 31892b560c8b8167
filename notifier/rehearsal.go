package notifier

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Rehearsal is what a message to one destination comes to, as far as that can
// be known without sending it.
type Rehearsal struct {
	// Messages are what the service gets to send: in the destination's format,
	// with the title in its place, and cut to the limits.
	Messages []*Message

	// Warnings tell what of the message is lost. They are free of secrets.
	Warnings []string

	// Requests are what goes over HTTP, in the order in which the service makes
	// them, each as text with its secrets masked.
	Requests []string

	// Connections are what the service opens for protocols other than HTTP,
	// each a network and an address: "tcp mail.example.com:587".
	Connections []string

	// Err is why the service has stopped early; its text is free of secrets.
	// Where there are requests, it is likely that the service misses something
	// in the answer, and where there are connections, that there are none.
	Err error
}

// Rehearse prepares a message for the destination and lets the service go
// about sending it, but nothing leaves the machine: every HTTP request is
// answered with 200 and, in JSON, with nothing but an access token (RFC 6749,
// section 5.1), and no connection opens. There are no further tries, and the
// destination keeps nothing. userAgent is as in [egress.NewPool].
func (d *Destination) Rehearse(ctx context.Context, userAgent string, m *Message) *Rehearsal {
	r := new(Rehearsal)
	t, err := d.copy()
	if err != nil {
		r.Err = err
		return r
	}
	defer t.Close()
	var mu sync.Mutex
	warn := func(level Level, text string) {
		mu.Lock()
		defer mu.Unlock()
		if level != LevelInfo {
			r.Warnings = append(r.Warnings, t.redact(text))
		}
	}
	m = m.prepared()
	way := &delivery{target: Target{Destination: t}, message: m, texts: &renderings{m: m}}
	r.Messages, err = way.parts(t)
	for _, line := range way.records {
		warn(line.Level, line.Text)
	}
	if err == nil {
		stage := &stage{destination: t}
		client := &Client{pool: egress.NewPoolWithTransport(userAgent, stage), options: t.options, guard: t.guard, log: warn, redact: t.redact}
		pending := make(outstanding, len(r.Messages))
		for i, m := range r.Messages {
			pending[i] = part{message: m}
		}
		err = pending.send(ctx, t.service, client)
		r.Requests, r.Connections = stage.took()
	}
	if err != nil {
		r.Err = &DeliveryError{text: t.redact(err.Error()), err: err}
	}
	return r
}

const rehearsedAnswer = `{"access_token": "TOKEN", "token_type": "Bearer", "expires_in": 3600}`

// errRehearsal is what becomes of connections that are not HTTP.
var errRehearsal = errors.New("no connection is opened in a rehearsal")

// stage takes requests and connections the way a network does.
type stage struct {
	destination *Destination

	mu          sync.Mutex
	requests    []string
	connections []string
}

func (s *stage) took() (requests, connections []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.connections
}

// RoundTrip implements http.RoundTripper.
func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := s.destination.show(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, text)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(rehearsedAnswer)), ContentLength: int64(len(rehearsedAnswer)),
	}, nil
}

// DialContext stands in for that of a net.Dialer.
func (s *stage) DialContext(_ context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, s.destination.redact(network+" "+address))
	return nil, errRehearsal
}
