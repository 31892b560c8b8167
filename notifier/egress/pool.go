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
)

// Pool holds the connections of the process. One Pool serves all requests
// and all configurations, so that connections outlive both. Use [NewPool].
type Pool struct {
	userAgent string
	proxy     func(*url.URL) (*url.URL, error)
	over      http.RoundTripper // instead of transports, where set

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// transportKey tells apart connections that must not be shared: one that the
// operator's URL has opened to a private address is not to be used for a
// client's.
type transportKey struct {
	insecure bool
	policy   string
	proxied  bool
}

// NewPool makes an empty pool. userAgent goes along with each HTTP request.
// Proxies are taken from the environment as it is now (HTTP_PROXY,
// HTTPS_PROXY, NO_PROXY, in upper or lower case).
func NewPool(userAgent string) *Pool {
	return &Pool{
		userAgent:  userAgent,
		proxy:      httpproxy.FromEnvironment().ProxyFunc(),
		transports: map[transportKey]*http.Transport{},
	}
}

// NewPoolWithTransport makes a pool whose HTTP requests all go over rt, for programs
// that have connections of their own, and for tests. What is not HTTP goes
// over connections from rt.DialContext, a method like that of [net.Dialer];
// without that method, nothing but HTTP can be sent.
func NewPoolWithTransport(userAgent string, rt http.RoundTripper) *Pool {
	p := NewPool(userAgent)
	p.over = rt
	return p
}

// UserAgent returns the User-Agent that the pool was made with.
func (p *Pool) UserAgent() string { return p.userAgent }

// Options are the settings of one request or connection.
type Options struct {
	Policy          *Policy       // which addresses may be dialled; nil allows all
	Insecure        bool          // do not verify the certificates of TLS servers
	FollowRedirects bool          // follow up to 5 redirects
	ConnectTimeout  time.Duration // for the TCP connection; 0 for no limit
}

// Close ends the connections that are idle. Those in use end when their
// request does.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}

type connectTimeoutKey struct{}

// transport returns the transport for connections of one kind.
func (p *Pool) transport(insecure bool, policy *Policy, proxied bool) *http.Transport {
	key := transportKey{insecure, policy.Key(), proxied}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transports[key]; t != nil {
		return t
	}
	dialPolicy := policy
	if proxied {
		dialPolicy = nil // what is dialled is the operator's proxy
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			timeout, _ := ctx.Value(connectTimeoutKey{}).(time.Duration)
			return dial(ctx, dialPolicy, timeout, network, addr)
		},
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    128,
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

// Dial opens a connection for a protocol other than HTTP. It fails if the pool
// is one of [NewPoolWithTransport] whose transport has no method DialContext.
func (p *Pool) Dial(ctx context.Context, network, address string, o Options) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil {
		if err := o.Policy.CheckHost(host); err != nil {
			return nil, err
		}
	}
	if p.over == nil {
		return dial(ctx, o.Policy, o.ConnectTimeout, network, address)
	}
	d, ok := p.over.(interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	})
	if !ok {
		return nil, errors.New("this program sends over HTTP only")
	}
	return d.DialContext(ctx, network, address)
}

// dial opens a connection to an address that policy allows.
func dial(ctx context.Context, policy *Policy, timeout time.Duration, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	if policy != nil {
		d.ControlContext = policy.Control
	}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil && policy != nil {
		err = discreet(err)
	}
	return conn, err
}

// discreet takes out of an error what a client is not to learn: what the names
// of the gateway's network mean, and who is asked about them.
func discreet(err error) error {
	if e, ok := errors.AsType[*BlockedError](err); ok {
		return &BlockedError{Rule: e.Rule, ofName: true} // literal addresses are refused before
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return errors.New("the host name has no address")
		}
		return errors.New("the address of the host name could not be found out")
	}
	return err
}

// roundTrip sends a request over the transport that it needs.
func (p *Pool) roundTrip(r *http.Request, o Options) (*http.Response, error) {
	proxy, err := p.proxy(r.URL)
	if err != nil {
		return nil, errors.New("the proxy that the environment names is no usable address")
	}
	// The dialled address is checked by the dialer; a literal one also
	// here, where a proxy dials or a resolver reads what we would not.
	if err := o.Policy.CheckHost(r.URL.Hostname()); err != nil {
		return nil, err
	}
	// A proxy is sent the Host header as the host of the address to fetch.
	if proxy != nil && r.Host != "" {
		if err := o.Policy.CheckHost(r.Host); err != nil {
			return nil, err
		}
	}
	if p.over != nil {
		return p.over.RoundTrip(r)
	}
	return p.transport(o.Insecure, o.Policy, proxy != nil).RoundTrip(r)
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// Do sends a request and follows redirects. Unlike net/http, it keeps method
// and body for 301 and 302: a message that became a GET would be lost behind
// an answer that looks like success.
func (p *Pool) Do(r *http.Request, o Options) (*http.Response, error) {
	r = r.WithContext(context.WithValue(r.Context(), connectTimeoutKey{}, o.ConnectTimeout))
	for hop := 0; ; hop++ {
		resp, err := p.roundTrip(r, o)
		if err != nil {
			return nil, transportError(err)
		}
		location := resp.Header.Get("Location")
		switch resp.StatusCode {
		case 301, 302, 303, 307, 308:
		default:
			return resp, nil
		}
		if !o.FollowRedirects || location == "" {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		_ = resp.Body.Close()
		if hop >= maxRedirects {
			return nil, fmt.Errorf("more than %d redirects", maxRedirects)
		}
		next, err := r.URL.Parse(location)
		if err != nil || next.Scheme != "http" && next.Scheme != "https" || next.Host == "" {
			return nil, errors.New("redirected to an address that is none")
		}
		if r.URL.Scheme == "https" && next.Scheme == "http" {
			return nil, errors.New("redirected from https to http, which would send the message in the clear")
		}
		same := next.Host == r.URL.Host
		r2 := r.Clone(r.Context())
		r2.URL = next
		if !same {
			r2.Host = ""
			// Headers may hold whatever the service signs in with.
			for name := range r2.Header {
				switch name {
				case "Content-Type", "User-Agent", "Accept", "Idempotency-Key":
				default:
					r2.Header.Del(name)
				}
			}
		}
		if resp.StatusCode == http.StatusSeeOther && r.Method != http.MethodHead {
			r2.Method, r2.Body, r2.GetBody, r2.ContentLength = http.MethodGet, nil, nil, 0
			r2.Header.Del("Content-Type")
		} else if r.GetBody != nil {
			if r2.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		r = r2
	}
}

// Get fetches u. User information in u is sent as HTTP Basic authentication.
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

// transportError takes out of an error what holds the URL, which is a secret
// as a whole.
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
	// The text that net/http has for bytes that come before the request is gone.
	if strings.HasPrefix(err.Error(), "readLoopPeekFailLocked") {
		return errors.New("the server sent something before it was asked; is that an HTTP server?")
	}
	return err
}
