package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// discover asks the server for the address of its API, as in
// https://spec.matrix.org/latest/client-server-api/#well-known-uris. A server
// without an answer has it at its own address.
func (s *session) discover(ctx context.Context, c *notifier.Client) error {
	var answer struct {
		Home *struct {
			BaseURL string `json:"base_url"`
		} `json:"m.homeserver"`
		Identity *struct {
			BaseURL string `json:"base_url"`
		} `json:"m.identity_server"`
	}
	resp, err := c.Do(ctx, plainGet(s.base+"/.well-known/matrix/client"))
	if resp != nil && resp.Code == 404 {
		return nil
	}
	if err != nil {
		return err
	}
	// Some servers answer every path with an HTML page.
	if resp.JSON(&answer) != nil || emptyDocument.MatchString(string(resp.Body)) {
		return nil
	}
	if answer.Home == nil || !strings.HasPrefix(answer.Home.BaseURL, "http") {
		return errors.New("the server gives no address of its API; fix its /.well-known/matrix/client or use discovery=no")
	}
	s.base = strings.TrimRight(answer.Home.BaseURL, "/")
	if _, err := c.Do(ctx, plainGet(s.base+"/_matrix/client/versions")); err != nil {
		return err
	}
	if answer.Identity != nil {
		ctx, cancel := context.WithTimeout(ctx, identityTimeout)
		defer cancel()
		if _, err := c.Do(ctx, plainGet(strings.TrimRight(answer.Identity.BaseURL, "/")+"/_matrix/identity/v2")); err != nil {
			c.Warn("Matrix: the identity server fails; messages do not need it: %v", err)
		}
	}
	return nil
}

// identityTimeout is the time to wait for the identity server. Messages do not
// need it.
const identityTimeout = 3 * time.Second

var emptyDocument = lazyregexp.New(`^\s*(null|\{\s*\})?\s*$`)

// plainGet returns a request without token and body. Some networks that serve
// well-known addresses refuse a GET with a body.
func plainGet(address string) *notifier.Request {
	return &notifier.Request{Method: "GET", URL: address}
}

// request returns a request to the API. A GET has the body null, for
// compatibility.
func (s *session) request(method string, payload any, path ...string) *notifier.Request {
	api := "v3"
	if s.version == "2" {
		api = "r0"
	}
	q := &notifier.Request{
		Method: method,
		URL:    s.base + notifier.Path(append([]string{"_matrix", "client", api}, path...)...),
		Body:   notifier.JSON(payload),
	}
	if s.token != "" {
		q.Header = map[string]string{"Authorization": "Bearer " + s.token}
	}
	return q
}

// call sends a request to the API and decodes the answer.
func (s *session) call(ctx context.Context, c *notifier.Client, method string, payload, answer any, path ...string) error {
	return s.do(ctx, c, s.request(method, payload, path...), answer)
}

// do sends q and decodes the answer. answer may be nil.
func (s *session) do(ctx context.Context, c *notifier.Client, q *notifier.Request, answer any) error {
	resp, err := c.Do(ctx, q)
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && status.Code == 429 && status.RetryAfter == 0 {
		// Older servers have the delay in the body only.
		var limit struct {
			After float64 `json:"retry_after_ms"`
		}
		if json.Unmarshal(resp.Body, &limit) == nil {
			status.RetryAfter = time.Duration(limit.After) * time.Millisecond
		}
	}
	if err != nil || answer == nil {
		return err
	}
	return resp.JSON(answer)
}

// nextNumber returns a transaction id for the next event. The server recognizes
// a retry by it.
func (s *session) nextNumber() string {
	if s.foreign || s.restored { // other numbers of the session are not known
		return uuid.NewString()
	}
	return strconv.FormatInt(s.events.Add(1)-1, 10)
}

// isNotFound reports whether err means that the requested object does not exist.
func isNotFound(err error) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && (status.Code == 404 || strings.Contains(status.Body, `"M_NOT_FOUND"`))
}

// hasStatus reports whether the server answered with one of the statuses.
func hasStatus(err error, codes ...int) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && slices.Contains(codes, status.Code)
}
