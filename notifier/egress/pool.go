package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
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

// MaxIdleConns is the maximum number of idle connections of the requests with the same settings.
// With fewer than there are deliveries under way, connections are closed only to be opened again.
const MaxIdleConns = 4096

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
		MaxIdleConns:           MaxIdleConns,
		MaxIdleConnsPerHost:    MaxIdleConns, // a message may have a thousand destinations on one host
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    20 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // answers are short
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
		return nil, &BlockedError{Rule: e.Rule, named: true, advice: e.advice}
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

// maxRedirects is the maximum number of redirects that are followed for one
// request.
const maxRedirects = 5

// Do sends a request. A [*BlockedError] is returned if the policy blocks the
// address. No error contains the URL, which may hold secrets, or what the server
// sent. If the context ends, the error is its cause. Both hold for errors of
// reading the answer's body, too.
//
// Unlike [http.Client], Do keeps the method and the body when it follows a
// redirect with status 301 or 302: a GET without the message could be answered
// as if the message had arrived. It removes headers that may hold credentials
// when a redirect leads to another host.
func (p *Pool) Do(r *http.Request, o Options) (*http.Response, error) {
	if o.ConnectTimeout != DefaultConnectTimeout {
		r = r.WithContext(context.WithValue(r.Context(), connectTimeoutKey{}, o.ConnectTimeout))
	}
	for redirects := 0; ; redirects++ {
		resp, err := p.roundTrip(r, o)
		if err != nil {
			return nil, transportError(errs.ContextError(r.Context(), err))
		}
		if !o.FollowRedirects || !isRedirect(resp) {
			if resp.Body != http.NoBody {
				resp.Body = body{resp.Body, r.Context()}
			}
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // lets the connection be reused
		_ = resp.Body.Close()
		if redirects >= maxRedirects {
			return nil, fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if r, err = redirect(r, resp); err != nil {
			return nil, err
		}
		if o.OnRedirect != nil {
			if err := o.OnRedirect(r); err != nil {
				return nil, err
			}
		}
	}
}

// Get fetches u as [Pool.Do] does, with the User-Agent of the pool. The user
// information of u is sent as HTTP Basic authentication.
func (p *Pool) Get(ctx context.Context, u *url.URL, o Options) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, transportError(err)
	}
	r.Header.Set("User-Agent", p.userAgent)
	if u.User != nil {
		password, _ := u.User.Password()
		r.SetBasicAuth(u.User.Username(), password)
		r.URL.User = nil
	}
	return p.Do(r, o)
}

// Open fetches u as [Pool.Get] does, and returns the body of an answer with the status 200.
func (p *Pool) Open(ctx context.Context, u *url.URL, o Options) (io.ReadCloser, error) {
	resp, err := p.Get(ctx, u, o)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// roundTrip sends one request with the transport for its options.
func (p *Pool) roundTrip(r *http.Request, o Options) (*http.Response, error) {
	proxy, err := p.proxy(r.URL)
	if err != nil {
		return nil, errors.New("the address of the proxy in the environment is invalid; write HTTP_PROXY and HTTPS_PROXY as http://host:port")
	}
	// The dialer checks the address that is dialled. The host is checked as
	// well, because a proxy may dial instead, and because a resolver may read
	// the host as another address than this program does.
	if err := o.Policy.CheckHost(r.URL.Hostname()); err != nil {
		return nil, err
	}
	// The Host header tells a proxy which host to fetch from.
	if proxy != nil && r.Host != "" {
		if err := o.Policy.CheckHost(r.Host); err != nil {
			return nil, err
		}
	}
	if p.fixed != nil {
		return p.fixed.RoundTrip(r)
	}
	return p.transport(o.Insecure, o.Policy, proxy != nil).RoundTrip(r)
}

// body is the body of an answer. Its errors come from [transportError].
type body struct {
	io.ReadCloser
	ctx context.Context // of the request
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // readers return io.EOF itself
		err = transportError(errs.ContextError(b.ctx, err))
	}
	return n, err
}

// isRedirect reports whether resp sends the client to another address.
func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
		return resp.Header.Get("Location") != ""
	}
	return false
}

// redirect returns the request that follows the redirect resp of r.
func redirect(r *http.Request, resp *http.Response) (*http.Request, error) {
	next, err := r.URL.Parse(resp.Header.Get("Location"))
	if err != nil || next.Scheme != "http" && next.Scheme != "https" || next.Host == "" {
		return nil, errors.New("redirected to an invalid address; Location must be an http or https URL")
	}
	if r.URL.Scheme == "https" && next.Scheme == "http" {
		return nil, errors.New("redirected from https to http, which would send the message in the clear")
	}
	to := r.Clone(r.Context())
	to.URL = next
	if next.Host != r.URL.Host {
		to.Host = ""
		for name := range to.Header {
			switch name {
			case "Content-Type", "User-Agent", "Accept", "Idempotency-Key", "X-Apprise-Recursion-Count":
			default: // may hold credentials
				to.Header.Del(name)
			}
		}
	}
	if resp.StatusCode == http.StatusSeeOther && r.Method != http.MethodHead {
		to.Method, to.Body, to.GetBody, to.ContentLength = http.MethodGet, nil, nil, 0
		to.Header.Del("Content-Type")
	} else if r.GetBody != nil {
		if to.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// transportError returns an error without the URL, which may hold secrets, and
// without what the server sent, which may repeat them. It explains errors of
// net/http that users cannot understand.
func transportError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the server closed the connection instead of answering (%w)", err)
	}
	if errors.Is(err, net.ErrClosed) {
		return errors.New("the server closed the connection before it had the whole request")
	}
	text := err.Error()
	// net/http returns this text if the server sends data on a connection
	// before it gets a request.
	if strings.HasPrefix(text, "readLoopPeekFailLocked") {
		return errors.New("the server sent something before it was asked; is it an HTTP server?")
	}
	// The text of the server's GOAWAY frame.
	if what, _, ok := strings.Cut(text, `, debug="`); ok {
		return errors.New(what)
	}
	if what := malformed(text); what != "" {
		return fmt.Errorf("the answer is not valid HTTP (%s)", what)
	}
	return err
}

// malformed returns what is wrong with an answer that net/http cannot read, or
// "" for another error. It leaves out what net/http quotes of the answer,
// because that can hold a part of a secret that the server repeats.
func malformed(text string) string {
	const header = "malformed MIME header"
	rest, http1 := strings.CutPrefix(text, "net/http: HTTP/1.x transport connection broken: ")
	http2 := strings.HasPrefix(text, "http2: ") || strings.HasPrefix(text, "stream error: ")
	switch {
	case strings.HasPrefix(rest, header): // in the head or in a trailer
		return header
	case !http1 && !http2:
		return ""
	}
	what, _, quoted := strings.Cut(rest, `"`)
	if !quoted {
		return ""
	}
	if http1 {
		what, _, _ = strings.Cut(strings.TrimPrefix(what, "http: "), ";")
	}
	return strings.TrimRight(what, ": ")
}
