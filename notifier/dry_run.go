package notifier

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// DryRun describes what a message to one destination would send, as far as that
// is known without an answer of the destination.
type DryRun struct {
	// Messages are the messages for the service, rendered in the destination's
	// format and divided by its limits.
	Messages []*Message

	// Warnings name what is lost of the message, without secrets.
	Warnings []string

	// Requests are the HTTP requests in the order in which the service makes
	// them, each as text with its secrets masked.
	Requests []string

	// Connections are the connections that the service opens for protocols
	// other than HTTP, each a network and an address, for example
	// "tcp mail.example.com:587".
	Connections []string

	// Err is why the service stopped early, without secrets. If there are
	// requests, the service probably needs something that the answer does not
	// have. If there are connections, it stopped because no connection opens in
	// a dry run.
	Err error
}

// DryRun renders a message for the destination and lets the service send it,
// but nothing leaves the machine: every HTTP request is answered with 200 and
// an access token as JSON (RFC 6749, section 5.1), and no connection opens.
// There is one attempt, and the destination keeps nothing. userAgent is as in
// [egress.NewPool].
func (d *Destination) DryRun(ctx context.Context, userAgent string, m *Message) *DryRun {
	r := new(DryRun)
	t, err := d.copy()
	if err != nil {
		r.Err = err
		return r
	}
	defer t.Close()
	var mu sync.Mutex
	warn := dryRunRecorder(func(level Level, text string) {
		mu.Lock()
		defer mu.Unlock()
		if level != LevelInfo {
			r.Warnings = append(r.Warnings, t.redact(text))
		}
	})
	c := m.withDefaults()
	delivery := &delivery{sending: &sending{message: c, texts: renderings{m: c}}, target: &Target{Destination: t}}
	whole := delivery.render(t)
	for _, line := range delivery.records {
		warn(line.Level, line.Text)
	}
	r.Messages = t.divide(nil, whole, form{})
	network := &dryRunNetwork{destination: t}
	client := &Client{pool: egress.NewPoolWithTransport(userAgent, network), target: t, options: t.options, log: warn}
	err = sendParts(ctx, t.service, client, new(Progress).divide(form{}, r.Messages, nil))
	if r.Requests, r.Connections = network.recorded(); err != nil {
		r.Err = &DeliveryError{text: t.redact(errs.PublicText(err)), err: err}
	}
	return r
}

type dryRunRecorder func(Level, string)

func (f dryRunRecorder) record(level Level, text string) { f(level, text) }

const dryRunAnswer = `{"access_token": "TOKEN", "token_type": "Bearer", "expires_in": 3600}`

var errDryRun = errors.New("no connection is opened in a dry run")

// dryRunNetwork records requests and connections instead of a network.
type dryRunNetwork struct {
	destination *Destination

	mu          sync.Mutex
	requests    []string
	connections []string
}

func (n *dryRunNetwork) recorded() (requests, connections []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests, n.connections
}

// RoundTrip implements [http.RoundTripper].
func (n *dryRunNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := n.destination.show(r)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, text)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(dryRunAnswer)), ContentLength: int64(len(dryRunAnswer)),
	}, nil
}

// DialContext has the signature of [net.Dialer.DialContext]. It always fails.
func (n *dryRunNetwork) DialContext(_ context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections = append(n.connections, n.destination.redact(network+" "+address))
	return nil, errDryRun
}
