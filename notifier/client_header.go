package notifier

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

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
		// The other side may close an idle connection at the moment it is used
		// again. With this header, which is not sent, net/http then repeats the
		// request.
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
		// A gateway that gets this refuses the message: clients cannot have it
		// forwarded twice.
		r.Header.Set(HopsHeader, strconv.Itoa(c.hops+1))
	}
	r.Header["User-Agent"] = []string{c.userAgent(r.Header.Get("User-Agent"))}
	if login {
		r.SetBasicAuth(user, password)
	}
}
