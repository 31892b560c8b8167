package notifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Client is what a service sends with. There is one for each message to each
// destination; it carries the URL's settings for the network and remembers
// what of the message is done, so that a second try does not repeat it.
type Client struct {
	pool    *egress.Pool
	options *options
	guard   *egress.Policy
	log     func(Level, string)
	redact  func(string) string

	transient bool // the destination serves one message
	hops      int  // gateways that the message has passed through
	header    func(context.Context) map[string]string

	mu    sync.Mutex
	done  map[string]any
	skips int // parts of the message that ask nothing of the destination
}

// Request is one HTTP request of a service.
type Request struct {
	Method   string            // default: POST with a body, else GET
	URL      string            // without what Query adds
	Query    url.Values        // added to the URL's
	Header   map[string]string // empty values are left out
	Login    *Server           // HTTP Basic authentication with what the URL says
	User     string            // HTTP Basic authentication, where User or Password is set
	Password string
	Body     *Body

	// Accept says which status codes mean that the destination has taken
	// the message. Default: 200 to 299.
	Accept func(code int) bool
}

// Response is the answer to a [Request].
type Response struct {
	Code   int
	Header http.Header
	Body   []byte // at most 1 MiB; a longer answer is an error
}

// JSON reads the body of the answer into v. An empty body leaves v as it is.
func (r *Response) JSON(v any) error {
	if len(r.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Body, v); err != nil {
		return errors.New("the service's answer is not the JSON it should be")
	}
	return nil
}

// StatusError is an answer whose status code means that the destination did
// not take the message.
type StatusError struct {
	Code       int
	Body       string        // the beginning of the answer, as text
	RetryAfter time.Duration // what the answer asks to wait for; 0 if nothing
	Header     http.Header
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the service answered %d", e.Code)
	if s := http.StatusText(e.Code); s != "" {
		text += " " + s
	}
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// maxResponse is how much of an answer is read.
const maxResponse = 1 << 20

// errLongAnswer is final: whoever says so much may well have the message.
var errLongAnswer = errors.New("the answer is longer than 1 MiB")

// Do sends a request and reads the answer. The error is a [*StatusError]
// where the destination has refused, with the response beside it; a
// [*egress.BlockedError] where the address may not be reached; and never holds the
// request's URL.
func (c *Client) Do(ctx context.Context, q *Request) (*Response, error) {
	r, cancel, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	defer cancel(nil)
	resp, err := c.pool.Do(r, c.egress())
	if err != nil {
		return nil, cause(r.Context(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", cause(r.Context(), err))
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
			Body:       c.excerpt(body),
			RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
			Header:     resp.Header,
		}
	}
	return answer, nil
}

// cause prefers the reason for which a context ended to the words "context
// canceled".
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// request makes the HTTP request and sees to its timeouts.
func (c *Client) request(ctx context.Context, q *Request) (*http.Request, context.CancelCauseFunc, error) {
	method := q.Method
	if method == "" {
		method = http.MethodPost
		if q.Body == nil {
			method = http.MethodGet
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if c.options.rto > 0 {
		ctx = withAnswerTimeout(ctx, cancel, seconds(c.options.rto))
	}
	r, err := http.NewRequestWithContext(ctx, method, q.URL, nil)
	if err != nil {
		cancel(nil)
		return nil, nil, errors.New("the parameters do not make a usable address")
	}
	if len(q.Query) > 0 {
		if r.URL.RawQuery != "" {
			r.URL.RawQuery += "&"
		}
		r.URL.RawQuery += q.Query.Encode()
	}
	// A kept connection may be closed by the other side just as we use it.
	// This header, which is not sent, lets net/http try again then.
	r.Header["Idempotency-Key"] = nil
	if q.Body != nil {
		if q.Body.err != nil {
			cancel(nil)
			return nil, nil, q.Body.err
		}
		r.ContentLength = q.Body.size
		if r.ContentLength > 0 {
			r.Body = q.Body.open()
			r.GetBody = func() (io.ReadCloser, error) { return q.Body.open(), nil }
		}
		if q.Body.ContentType != "" {
			r.Header.Set("Content-Type", q.Body.ContentType)
		}
	}
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
	r.Header["User-Agent"] = []string{c.userAgent(r.Header.Get("User-Agent"))}
	user, password := q.User, q.Password
	if q.Login != nil {
		user, password = q.Login.Login()
	}
	if user != "" || password != "" {
		r.SetBasicAuth(user, password)
	}
	return r, cancel, nil
}

// userAgent is what a request says that it comes from, where the URL says
// given. It tells other gateways how many the message has passed through, as
// [HopsOf] reads it; only an operator's URL can hide that, since a client could
// have a message run in circles.
func (c *Client) userAgent(given string) string {
	own := c.pool.UserAgent()
	if c.hops > 0 {
		own += hopsMark + strconv.Itoa(c.hops)
	}
	switch {
	case given == "":
		return own
	case c.guard == nil:
		return given
	}
	return given + " " + own
}

const hopsMark = " hops/"

// HopsOf is how many gateways a message had passed through before the one
// that sent it, as the User-Agent of a request from there says; product is the
// name that gateways begin theirs with. It is -1 where no gateway has sent it.
func HopsOf(userAgent, product string) int {
	ours := strings.LastIndex(userAgent, product) // behind what a client has put there
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

// withAnswerTimeout cancels when an answer takes longer than d from the
// moment that the request is written.
func withAnswerTimeout(ctx context.Context, cancel context.CancelCauseFunc, d time.Duration) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) {
			t := time.AfterFunc(d, func() { cancel(fmt.Errorf("no answer within %s (rto)", d)) })
			context.AfterFunc(ctx, func() { t.Stop() })
		},
	})
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// retryAfter reads the header of that name (RFC 9110, section 10.2.3).
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

// maxExcerpt is how many characters of an answer an error shows.
const maxExcerpt = 300

// excerpt returns the beginning of an answer in one line. It masks secrets
// before it cuts, because a part of a secret would not be recognised.
func (c *Client) excerpt(body []byte) string {
	s := string(body[:min(len(body), 64<<10)])
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "")
	}
	if c.redact != nil {
		s = c.redact(s)
	}
	return markup.Truncate(strings.Join(strings.Fields(s), " "), maxExcerpt)
}

// Post sends a body and wants nothing of the answer but its status.
func (c *Client) Post(ctx context.Context, address string, body *Body, header map[string]string) error {
	_, err := c.Do(ctx, &Request{URL: address, Body: body, Header: header})
	return err
}

// PostJSON sends v as JSON. header holds pairs of a name and a value.
func (c *Client) PostJSON(ctx context.Context, address string, v any, header ...string) error {
	return c.Post(ctx, address, JSON(v), headers(header))
}

// PostForm sends v as a form. header holds pairs of a name and a value.
func (c *Client) PostForm(ctx context.Context, address string, v url.Values, header ...string) error {
	return c.Post(ctx, address, Form(v), headers(header))
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

// DoJSON sends a request and reads the JSON of the answer into v, which may
// be nil.
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

// egress returns the settings for the pool.
func (c *Client) egress() egress.Options {
	return egress.Options{
		Policy:          c.guard,
		Insecure:        !c.options.verify,
		FollowRedirects: c.options.redirect,
		ConnectTimeout:  seconds(c.options.cto),
	}
}

// Dial opens a connection for a protocol other than HTTP, under the same
// rules and timeouts. A network of the unix family is subject to
// [Client.Local]. Dial fails where the pool is one of [egress.NewPoolWithTransport] that has
// no connections but those of its HTTP.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if strings.HasPrefix(network, "unix") {
		if err := c.Local(); err != nil {
			return nil, err
		}
	}
	return c.pool.Dial(ctx, network, address, c.egress())
}

// Local returns an [*egress.BlockedError] where the destination must leave alone what
// belongs to the gateway's own machine, such as its sockets and its standard
// error: a client has brought the URL.
func (c *Client) Local() error {
	return c.guard.CheckLocal()
}

// Verify says whether certificates of TLS servers are to be checked, for
// protocols other than HTTP.
func (c *Client) Verify() bool { return c.options.verify }

// AnswerTimeout is how long to wait for each answer of a server, for protocols
// other than HTTP; 0 for as long as the context allows.
func (c *Client) AnswerTimeout() time.Duration { return seconds(c.options.rto) }

// Store says whether sessions and tokens are kept for the next message. Where
// they are not, a service that signs in should sign out as well.
func (c *Client) Store() bool { return c.options.store && !c.transient }

// Warn adds a line to the record of this delivery, which the client of the
// gateway gets to see.
func (c *Client) Warn(format string, args ...any) { c.log(LevelWarning, fmt.Sprintf(format, args...)) }

// Skip says that the message asks nothing of the destination, and why: it is to
// close an alert, say, and there is none. The service returns nil then, having
// sent nothing. Where that goes for all parts of a message, the result is
// [Skipped], which is no failure.
func (c *Client) Skip(format string, args ...any) {
	c.Warn(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skips++
}

// Once runs f unless an earlier try at the same part of the same message has
// run it with success under the same key. A service of several steps uses it
// so that a retry does not send twice what has arrived.
func (c *Client) Once(key string, f func() error) error {
	_, err := Kept(c, key, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Kept is like [Client.Once] for a step that has a result, such as the number
// of an uploaded file, which later steps need on a retry as well.
func Kept[T any](c *Client, key string, f func() (T, error)) (T, error) {
	c.mu.Lock()
	value, done := c.done[key].(T)
	c.mu.Unlock()
	if done {
		return value, nil
	}
	value, err := f()
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[string]any{}
	}
	c.done[key] = value
	return value, nil
}

// eachAtOnce is how many targets of one destination are served at a time.
const eachAtOnce = 4

// Each runs f for every target, a few at a time, whatever becomes of the
// others, and returns what went wrong. A target whose f has returned nil is
// left out when the message is tried again.
func (c *Client) Each(ctx context.Context, targets []string, f func(ctx context.Context, target string) error) error {
	once := func(target string) error {
		_, err := Kept(c, "each "+target, func() (targetDone, error) { return targetDone{}, f(ctx, target) })
		return err
	}
	if len(targets) == 1 {
		return once(targets[0])
	}
	errs := make([]error, len(targets))
	room := make(chan struct{}, eachAtOnce)
	var wg sync.WaitGroup
	for i, target := range targets {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			errs[i] = protect(func() error { return once(target) })
			if errs[i] != nil {
				errs[i] = fmt.Errorf("target %d of %d: %w", i+1, len(targets), errs[i])
			}
		})
	}
	wg.Wait()
	return join(errs)
}

// targetDone is what is kept of a target that has its message.
type targetDone struct{}

// severalErrors are what went wrong in several places. Their text is about the
// first few, since a client decides how many there are.
type severalErrors []error

const errorsShown = 10

// join is like [errors.Join], but for the text of many errors.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return severalErrors(errs)
}

func (e severalErrors) Unwrap() []error { return e }

func (e severalErrors) Error() string {
	var b strings.Builder
	for i, err := range e {
		if i == errorsShown {
			fmt.Fprintf(&b, "\nand %d more", len(e)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// PanicError is a mistake in a service, made harmless.
type PanicError struct {
	Stack string // for the log of the operator, never for a client
	Value string
}

func (e *PanicError) Error() string { return "the service failed with an internal error" }

// protect turns a panic into an error.
func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// Cached is a value that outlives a message, such as an access token or a
// session. The zero value is empty. It must not be copied.
type Cached[T any] struct {
	once  sync.Once
	lock  chan struct{}
	value T
	until time.Time
	have  bool
}

// Get returns the value, or gets one from fetch, which says for how long it
// is good; 0 stands for until [Cached.Drop]. Of several callers one fetches
// and the others wait.
func (c *Cached[T]) Get(ctx context.Context, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	c.once.Do(func() { c.lock = make(chan struct{}, 1) })
	var none T
	select {
	case c.lock <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-c.lock }()
	if c.have && (c.until.IsZero() || time.Now().Before(c.until)) {
		return c.value, nil
	}
	value, life, err := fetch(ctx)
	if err != nil {
		return none, err
	}
	c.value, c.have, c.until = value, true, time.Time{}
	if life > 0 {
		// Renewed a little early, so that it does not expire on its way.
		c.until = time.Now().Add(life - min(life/10, 30*time.Second))
	}
	return value, nil
}

// Drop forgets the value, because the service has refused it.
func (c *Cached[T]) Drop(ctx context.Context) {
	c.once.Do(func() { c.lock = make(chan struct{}, 1) })
	select {
	case c.lock <- struct{}{}:
		c.have = false
		<-c.lock
	case <-ctx.Done():
	}
}
