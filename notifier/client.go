package notifier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Client connects a service to its destination: over HTTP with [Client.Do] and its short forms, and
// over other protocols with [Client.Dial]. It applies the network settings of the URL (verify,
// redirect, rto, cto) and the rules about which addresses may be dialled. A service gets one for
// each call of Send and must not keep it.
type Client struct {
	// Steps records which steps of sending the message are done. A service that sends more than one
	// request for a message uses it, so that another attempt does not repeat what has arrived.
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

// Dial opens a connection for a protocol other than HTTP, under the same rules and timeouts.
// [Client.Local] decides about networks of the unix family. Dial fails if the sender's pool was
// given a transport without a method DialContext; see [egress.NewPoolWithTransport].
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

// Local returns an [*egress.BlockedError] if the service must not use anything of the machine it
// runs on, such as sockets, files and the standard error. It returns nil for URLs of the operator.
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

// Skip records that there is nothing to send to the destination, and why: for example, a message
// closes an alert and no alert is open. The service then returns nil and sends nothing. If all
// parts of a message are skipped, the status of the result is [Skipped].
func (c *Client) Skip(format string, args ...any) {
	c.Warn(format, args...)
	c.Steps.skip()
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// commonHeaders are the headers of requests to which neither the service nor the message adds a
// field, by content type. Requests share them, so they must not be changed.
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

// userAgent returns the User-Agent of a request. given is the one that the URL asks for. It
// contains the number of gateways that the message has passed through, for [HopsOf]. Only a URL of
// the operator can hide that number: a client could otherwise send a message in circles.
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

// HopsOf returns the number of gateways that a message had passed through before the one that sent
// a request with this User-Agent. product is a text that the User-Agent of every gateway contains.
// HopsOf returns -1 if the request does not come from a gateway.
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

// computeSlots limit the calls of [Client.Compute] under way in a process: one for clients and one
// for the operator, so that clients cannot take the operator's.
type computeSlots struct{ client, operator slots }

func newComputeSlots() computeSlots { return computeSlots{make(slots, 1), make(slots, 1)} }

// Compute runs f, a long computation, such as one with a key of the URL. One such call runs at a
// time for all URLs of clients, and one for all URLs of the operator. Compute waits for its turn
// until ctx ends, and then returns the cause without a call of f. It returns when f has returned,
// also if ctx has ended meanwhile. The caller limits the work of f beforehand, and f must not use
// the network.
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

// ForClient reports whether the URL is a client's. The operator's URLs have no egress policy.
func (c *Client) ForClient() bool { return c.policy() != nil }

// Request is one HTTP request of a service.
type Request struct {
	Method   string            // default: POST with a body, else GET
	URL      string            // without what Query adds
	Query    url.Values        // added to the query of URL
	Header   map[string]string // empty values are left out
	Login    *Server           // HTTP Basic authentication with the user and password of the URL
	User     string            // HTTP Basic authentication, if User or Password is set
	Password string
	Body     *Body

	// Accept reports whether a status code means that the destination has
	// taken the message. Default: 200 to 299.
	Accept func(code int) bool
}

// Response is the answer to a [Request].
type Response struct {
	Code   int
	Header http.Header
	Body   []byte // at most 1 MiB; a longer answer is an error
}

// JSON decodes the body of the answer into v. An empty body leaves v as it is.
func (r *Response) JSON(v any) error {
	if len(r.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Body, v); err != nil {
		return errors.New("the service's answer is not the JSON it should be")
	}
	return nil
}

// maxResponse is the maximum length of an answer, in bytes.
const maxResponse = 1 << 20

// Do sends a request and reads the answer. If the destination refuses the request, the error is a
// [*StatusError] and the response is returned as well. If the address must not be reached, the
// error is an [*egress.BlockedError]. No error contains the request's URL.
func (c *Client) Do(ctx context.Context, q *Request) (*Response, error) {
	r, cancel, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	defer cancel(nil)
	if err := c.requests.take(); err != nil {
		return nil, err
	}
	resp, err := c.pool.Do(r, c.egress())
	if err != nil {
		return nil, errs.ContextError(r.Context(), err)
	}
	return c.response(r, q, resp)
}

// response reads the answer to r, which is the request q.
func (c *Client) response(r *http.Request, q *Request, resp *http.Response) (*Response, error) {
	defer resp.Body.Close()
	body, err := readAnswer(resp)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", errs.ContextError(r.Context(), err))
	}
	if len(body) > maxResponse {
		return nil, errLongAnswer
	}
	answer := &Response{Code: resp.StatusCode, Header: resp.Header, Body: body}
	accept := q.Accept
	if accept == nil {
		accept = func(code int) bool { return code/100 == 2 }
	}
	if !accept(resp.StatusCode) {
		return answer, &StatusError{
			Code:       resp.StatusCode,
			Body:       c.Excerpt(string(body)),
			RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
			Header:     resp.Header,
		}
	}
	return answer, nil
}

// readAnswer reads the body of resp, at most maxResponse bytes and one more,
// which tells the caller that the body is too long.
func readAnswer(resp *http.Response) ([]byte, error) {
	if resp.Body == http.NoBody {
		return nil, nil
	}
	size := int64(bytes.MinRead)
	if n := resp.ContentLength; n >= 0 && n <= maxResponse {
		size = n + 1 // for the end of the file
	}
	body := make([]byte, 0, size)
	for {
		n, err := resp.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF || len(body) > maxResponse:
			return body, nil
		case err != nil:
			return body, err
		case len(body) == cap(body):
			body = slices.Grow(body, min(len(body), maxResponse+1-len(body)))
		}
	}
}

// request makes the HTTP request, with its timeouts.
func (c *Client) request(ctx context.Context, q *Request) (*http.Request, context.CancelCauseFunc, error) {
	method := q.Method
	if method == "" {
		method = http.MethodPost
		if q.Body == nil {
			method = http.MethodGet
		}
	}
	cancel := func(error) {}
	if c.options.rto > 0 {
		ctx, cancel = withAnswerTimeout(ctx, seconds(c.options.rto))
	}
	r, err := http.NewRequestWithContext(ctx, method, q.URL, nil)
	if err != nil {
		cancel(nil)
		return nil, nil, errUnusableAddress
	}
	if len(q.Query) > 0 {
		if r.URL.RawQuery != "" {
			r.URL.RawQuery += "&"
		}
		r.URL.RawQuery += q.Query.Encode()
	}
	contentType := ""
	if b := q.Body; b != nil {
		if b.err != nil {
			cancel(nil)
			return nil, nil, b.err
		}
		c.bodies.share(b)
		r.ContentLength = b.size
		if r.ContentLength > 0 {
			r.Body = b.open()
			r.GetBody = func() (io.ReadCloser, error) { return b.open(), nil }
		}
		contentType = b.ContentType
	}
	c.setHeader(ctx, r, q, contentType)
	return r, cancel, nil
}

// withAnswerTimeout returns a context that is cancelled if the answer does not arrive within d
// after the request is written. The caller calls cancel when it has the answer.
func withAnswerTimeout(ctx context.Context, d time.Duration) (_ context.Context, cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) {
			t := time.AfterFunc(d, func() { cancel(fmt.Errorf("no answer within %s (rto)", d)) })
			context.AfterFunc(ctx, func() { t.Stop() })
		},
	}), cancel
}

// retryAfter returns the time that a Retry-After header asks for (RFC 9110,
// section 10.2.3), at least 1ms, or 0 if s is empty or invalid.
func retryAfter(s string) time.Duration {
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && n < 1e6 {
		return max(seconds(n), time.Millisecond)
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(time.Until(t), time.Millisecond)
	}
	return 0
}

// An error shows at most maxExcerpt characters of an answer, taken from its first
// maxExcerptBytes bytes.
const (
	maxExcerpt      = 300
	maxExcerptBytes = 64 << 10
)

// Excerpt returns the beginning of a server's text for an error: at most 300 characters on one
// line. It masks the secrets of the URL before it cuts the text, because a part of a secret cannot
// be recognized. So a service must not cut a server's text itself.
func (c *Client) Excerpt(text string) string {
	s := strings.ToValidUTF8(c.target.masker().MaskPrefix(text, maxExcerptBytes), "")
	return markup.Truncate(strings.Join(strings.Fields(s), " "), maxExcerpt)
}

// Post sends a body and ignores the body of the answer.
func (c *Client) Post(ctx context.Context, address string, body *Body, header map[string]string) error {
	_, err := c.Do(ctx, &Request{URL: address, Body: body, Header: header})
	return err
}

// PostJSON sends v as JSON. header lists pairs of a name and a value.
func (c *Client) PostJSON(ctx context.Context, address string, v any, header ...string) error {
	_, err := c.Do(ctx, &Request{URL: address, Body: JSON(v), Header: headers(header)})
	return err
}

// PostForm sends v as a form. header lists pairs of a name and a value.
func (c *Client) PostForm(ctx context.Context, address string, v url.Values, header ...string) error {
	_, err := c.Do(ctx, &Request{URL: address, Body: Form(v), Header: headers(header)})
	return err
}

func headers(pairs []string) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	h := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		h[pairs[i]] = pairs[i+1]
	}
	return h
}

// DoJSON sends a request and decodes the JSON of the answer into v, unless v is nil.
func (c *Client) DoJSON(ctx context.Context, q *Request, v any) error {
	resp, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	if v == nil {
		return nil
	}
	return resp.JSON(v)
}
