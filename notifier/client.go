package notifier

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Client connects a service to its destination: over HTTP with [Client.Do] and
// its short forms, and over other protocols with [Client.Dial]. It applies what
// the URL says about the network (verify, redirect, rto, cto) and the rules
// about which addresses may be dialled. A service gets one for each call of
// Send and must not keep it.
type Client struct {
	// Steps records which steps of sending the message are done. A service that
	// sends more than one request for a message uses it, so that another
	// attempt does not repeat what has arrived.
	Steps *Steps

	pool    *egress.Pool
	compute *computeSlots // nil in a dry run: no limit
	target  *Destination
	options *options // of target
	headers commonHeaders
	log     recorder

	states    StateStore      // nil if the destination keeps none
	transient bool            // the destination is for one message
	hops      int             // gateways that the message has passed through
	requests  *requestCounter // nil for no limit
	bodies    *sharedBodies   // nil for a short message
	header    func(context.Context) map[string]string
}

// A recorder takes the records of a delivery.
type recorder interface {
	record(level Level, text string)
}

// policy returns the policy of the destination; nil allows everything.
func (c *Client) policy() *egress.Policy {
	if c.target == nil { // in a test of a service
		return nil
	}
	return c.target.policy
}

// egress returns the settings for the pool.
func (c *Client) egress() egress.Options {
	o := egress.Options{
		Policy:          c.policy(),
		Insecure:        !c.options.verify,
		FollowRedirects: c.options.redirect,
		ConnectTimeout:  seconds(c.options.cto),
	}
	if c.requests != nil {
		o.OnRedirect = c.requests.redirect
	}
	return o
}

// Dial opens a connection for a protocol other than HTTP, under the same
// rules and timeouts. [Client.Local] decides about networks of the unix
// family. Dial fails if the sender's pool was given a transport without a
// method DialContext; see [egress.NewPoolWithTransport].
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if strings.HasPrefix(network, "unix") {
		if err := c.Local(); err != nil {
			return nil, err
		}
	}
	if err := c.requests.take(); err != nil {
		return nil, err
	}
	return c.pool.Dial(ctx, network, address, c.egress())
}

// Local returns an [*egress.BlockedError] if the service must not use anything
// of the machine it runs on, such as sockets, files and the standard error. It
// returns nil for URLs of the operator.
func (c *Client) Local() error { return c.policy().CheckLocal() }

// Verify reports whether to verify the certificates of TLS servers. It is for
// protocols other than HTTP.
func (c *Client) Verify() bool { return c.options.verify }

// AnswerTimeout returns how long to wait for each answer of a server, or 0 to
// wait as long as the context allows. It is for protocols other than HTTP.
func (c *Client) AnswerTimeout() time.Duration { return seconds(c.options.rto) }

// Store reports whether the service may keep sessions and tokens for the next
// message. If not, a service that signs in should sign out as well.
func (c *Client) Store() bool { return c.options.store && !c.transient }

// Warn adds a warning to the records of this delivery. The client that sent the
// message can read it. Errors in args are shown without details of this
// machine.
func (c *Client) Warn(format string, args ...any) {
	args = slices.Clone(args)
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = errs.PublicText(err)
		}
	}
	c.log.record(LevelWarning, fmt.Sprintf(format, args...))
}

// Skip records that there is nothing to send to the destination, and why: for
// example, a message closes an alert and no alert is open. The service then
// returns nil and sends nothing. If all parts of a message are skipped, the
// status of the result is [Skipped].
func (c *Client) Skip(format string, args ...any) {
	c.Warn(format, args...)
	c.Steps.skip()
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
