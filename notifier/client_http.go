package notifier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

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

// Do sends a request and reads the answer. If the destination refuses the
// request, the error is a [*StatusError] and the response is returned as well.
// If the address must not be reached, the error is an [*egress.BlockedError].
// No error contains the request's URL.
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

// withAnswerTimeout returns a context that is cancelled if the answer does not
// arrive within d after the request is written. The caller calls cancel when it
// has the answer.
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

// Excerpt returns the beginning of a server's text for an error: at most 300
// characters on one line. It masks the secrets of the URL before it cuts the
// text, because a part of a secret cannot be recognized. So a service must not
// cut a server's text itself.
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

// DoJSON sends a request and decodes the JSON of the answer into v, unless v
// is nil.
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
