package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Pool is a pool of connections that enforces a [Policy] on each connection.
// One Pool serves all requests and all configurations of a process, so that
// idle connections survive a reload. Create it with [NewPool].
type Pool struct {
	userAgent string
	proxy     func(*url.URL) (*url.URL, error)
	fixed     http.RoundTripper // sends all requests, if not nil

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// transportKey separates connections that must not be shared. Connections of
// different policies are separate: a client must not use the connection that
// an operator's URL opened to a private address.
type transportKey struct {
	insecure bool
	policy   string
	proxied  bool
}

// Options are the settings of one request or connection.
type Options struct {
	Policy          *Policy                      // which addresses may be dialled; nil allows all
	Insecure        bool                         // do not verify the certificates of TLS servers
	FollowRedirects bool                         // follow up to 5 redirects
	OnRedirect      func(to *http.Request) error // is called before a redirect is followed; an error ends the request
	ConnectTimeout  time.Duration                // limit for opening a connection; 0 means none
}

// NewPool returns an empty pool. userAgent is the User-Agent of requests that
// the pool makes itself. Proxies are read from the environment once, now
// (HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in upper or lower case).
func NewPool(userAgent string) *Pool {
	return &Pool{
		userAgent:  userAgent,
		proxy:      httpproxy.FromEnvironment().ProxyFunc(),
		transports: map[transportKey]*http.Transport{},
	}
}

// NewPoolWithTransport returns a pool that sends all HTTP requests with rt. It
// is for programs that have their own transport, and for tests. If rt has a
// method DialContext as [net.Dialer] has, [Pool.Dial] uses it; otherwise
// Pool.Dial fails.
func NewPoolWithTransport(userAgent string, rt http.RoundTripper) *Pool {
	p := NewPool(userAgent)
	p.fixed = rt
	return p
}

// UserAgent returns the userAgent of [NewPool].
func (p *Pool) UserAgent() string { return p.userAgent }

// Close closes the idle connections. Connections in use are closed when their
// request ends.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}

// DefaultConnectTimeout is the [Options.ConnectTimeout] of most requests. Requests
// with another one cost a little more.
const DefaultConnectTimeout = 10 * time.Second

// connectTimeoutKey is the context key of an Options.ConnectTimeout that is not
// DefaultConnectTimeout. Transports are shared by requests with different
// timeouts.
type connectTimeoutKey struct{}

// maxIdleConns is the maximum number of idle connections of a transport: as
// many as the default number of deliveries under way.
const maxIdleConns = 1024

// transport returns the transport for requests with the given settings.
func (p *Pool) transport(insecure bool, policy *Policy, proxied bool) *http.Transport {
	key := transportKey{insecure, policy.Key(), proxied}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transports[key]; t != nil {
		return t
	}
	dialPolicy := policy
	if proxied {
		dialPolicy = nil // the operator's proxy is dialled
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			timeout, ok := ctx.Value(connectTimeoutKey{}).(time.Duration)
			if !ok {
				timeout = DefaultConnectTimeout
			}
			return dial(ctx, dialPolicy, timeout, network, address)
		},
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConns, // a message may have a thousand destinations on one host
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    20 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}, //nolint:gosec // the URL says verify=no
	}
	if proxied {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return p.proxy(r.URL) }
	}
	p.transports[key] = t
	return t
}

// Dial opens a connection for a protocol other than HTTP. A [*BlockedError] is
// returned if the policy blocks the address. Dial applies ConnectTimeout and
// Policy of o.
func (p *Pool) Dial(ctx context.Context, network, address string, o Options) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil {
		if err := o.Policy.CheckHost(host); err != nil {
			return nil, err
		}
	}
	if p.fixed == nil {
		return dial(ctx, o.Policy, o.ConnectTimeout, network, address)
	}
	d, ok := p.fixed.(interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	})
	if !ok {
		return nil, errors.New("this program sends over HTTP only")
	}
	return d.DialContext(ctx, network, address)
}

// dial opens a connection to an address that the policy does not block.
func dial(ctx context.Context, policy *Policy, timeout time.Duration, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	if policy != nil {
		d.ControlContext = policy.Control
	}
	c, err := d.DialContext(ctx, network, address)
	if err == nil {
		return conn{c}, nil
	}
	if e, ok := errors.AsType[*BlockedError](err); ok && policy != nil {
		// CheckHost has already blocked addresses in the URL itself. Clients
		// must not learn which addresses a host name has here.
		return nil, &BlockedError{Rule: e.Rule, named: true}
	}
	return nil, errs.Public(err)
}

// conn is a connection whose errors have no addresses in their text. Services
// use libraries that turn errors into text before anyone can see their types.
type conn struct{ net.Conn }

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, errs.Public(err)
}

func (c conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, errs.Public(err)
}

func (c conn) Close() error                       { return errs.Public(c.Conn.Close()) }
func (c conn) SetDeadline(t time.Time) error      { return errs.Public(c.Conn.SetDeadline(t)) }
func (c conn) SetReadDeadline(t time.Time) error  { return errs.Public(c.Conn.SetReadDeadline(t)) }
func (c conn) SetWriteDeadline(t time.Time) error { return errs.Public(c.Conn.SetWriteDeadline(t)) }

// CloseWrite closes the sending side. It fails for networks that cannot.
func (c conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return errs.Public(half.CloseWrite())
}
