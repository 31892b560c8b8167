package notifier

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Client connects a service to its destination: over HTTP with [Client.Do] and its short forms, and
// over other protocols with [Client.Dial]. It applies the network settings of the URL (verify,
// redirect, rto, cto) and the rules about which addresses may be dialled. A service gets one for
// each call of Send and must not keep it.
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

	states    StateStore      // nil if the destination stores none
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

// Warn adds a warning to the records of this delivery, which the client that sent the message can
// read. Errors in args are shown without details of this machine.
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

// commonHeaders are the headers of requests to which neither the service nor the
// message adds a field, by content type. Requests share them, so they must not be
// changed.
type commonHeaders map[string]http.Header

func newCommonHeaders(userAgent string) commonHeaders {
	h := commonHeaders{}
	for _, contentType := range []string{"", jsonType, formType} {
		h[contentType] = newHeader(userAgent, contentType)
	}
	return h
}

// newHeader returns the header fields that every request has.
func newHeader(userAgent, contentType string) http.Header {
	h := http.Header{
		// The other side may close an idle connection just as it is used again. With this header,
		// which is not sent, net/http then repeats the request.
		"Idempotency-Key": nil,
		"User-Agent":      {userAgent},
	}
	if contentType != "" {
		h["Content-Type"] = []string{contentType}
	}
	return h
}

// setHeader sets the header fields of r.
func (c *Client) setHeader(ctx context.Context, r *http.Request, q *Request, contentType string) {
	user, password := q.User, q.Password
	if q.Login != nil {
		user, password = q.Login.Login()
	}
	login := user != "" || password != ""
	if len(q.Header) == 0 && !login && c.hops == 0 && c.header == nil {
		if h := c.headers[contentType]; h != nil {
			r.Header = h
			return
		}
	}
	r.Header = newHeader("", contentType)
	if c.header != nil {
		for name, value := range c.header(ctx) {
			r.Header.Set(name, value)
		}
	}
	for name, value := range q.Header {
		switch {
		case value == "":
		case http.CanonicalHeaderKey(name) == "Host":
			r.Host = value
		default:
			r.Header.Set(name, strings.TrimSpace(singleLine(value)))
		}
	}
	if c.transient && c.hops > 0 {
		// A gateway that receives this refuses the message, because clients cannot have it
		// forwarded twice.
		r.Header.Set(HopsHeader, strconv.Itoa(c.hops+1))
	}
	r.Header["User-Agent"] = []string{c.userAgent(r.Header.Get("User-Agent"))}
	if login {
		r.SetBasicAuth(user, password)
	}
}

// HopsHeader is the header field in which a request from one gateway to another
// has the number of gateways that the message has passed through.
const HopsHeader = "X-Apprise-Recursion-Count"

const hopsMark = " hops/"

// userAgent returns the User-Agent of a request. given is the one that the URL
// asks for. It contains the number of gateways that the message has passed
// through, for [HopsOf]. Only a URL of the operator can hide that number: a
// client could otherwise send a message in circles.
func (c *Client) userAgent(given string) string {
	own := c.pool.UserAgent()
	if c.hops > 0 {
		own += hopsMark + strconv.Itoa(c.hops)
	}
	switch {
	case given == "":
		return own
	case c.policy() == nil:
		return given
	}
	return given + " " + own
}

// HopsOf returns the number of gateways that a message had passed through
// before the one that sent a request with this User-Agent. product is a text
// that the User-Agent of every gateway contains. HopsOf returns -1 if the
// request does not come from a gateway.
func HopsOf(userAgent, product string) int {
	ours := strings.LastIndex(userAgent, product) // a client's own text comes before it
	if ours < 0 {
		return -1
	}
	_, n, _ := strings.Cut(userAgent[ours:], hopsMark)
	hops, err := strconv.Atoi(n)
	if err != nil || hops < 0 {
		return 0
	}
	return hops
}

// computeSlots limit the calls of [Client.Compute] under way in a process: one
// for clients and one for the operator, so that clients cannot take the
// operator's.
type computeSlots struct{ client, operator slots }

func newComputeSlots() computeSlots { return computeSlots{make(slots, 1), make(slots, 1)} }

// Compute runs f, a long computation, such as one with a key of the URL. One
// such call runs at a time for all URLs of clients, and one for all URLs of the
// operator. Compute waits for its turn until ctx ends, and then returns the
// cause without a call of f. It returns when f has returned, also if ctx has
// ended meanwhile. The caller limits the work of f beforehand, and f must not
// use the network.
func (c *Client) Compute(ctx context.Context, f func() error) error {
	if c.compute != nil {
		slots := c.compute.operator
		if c.ForClient() {
			slots = c.compute.client
		}
		if !slots.take(ctx) {
			return context.Cause(ctx)
		}
		defer func() { <-slots }()
		if ctx.Err() != nil { // take also takes a free slot when ctx has ended
			return context.Cause(ctx)
		}
	}
	return f()
}

// ForClient reports whether the URL is a client's. The operator's URLs have no
// egress policy.
func (c *Client) ForClient() bool { return c.policy() != nil }
