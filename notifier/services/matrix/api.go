package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// discover asks the server where its API is, and checks the answer as
// https://spec.matrix.org/latest/client-server-api/#well-known-uris demands.
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
	// Many a server answers every path with a page of its own.
	if resp.JSON(&answer) != nil || emptyDocument.MatchString(string(resp.Body)) {
		return nil
	}
	if answer.Home == nil || !strings.HasPrefix(answer.Home.BaseURL, "http") {
		return errors.New("the server names no address")
	}
	s.base = strings.TrimRight(answer.Home.BaseURL, "/")
	if _, err := c.Do(ctx, plainGet(s.base+"/_matrix/client/versions")); err != nil {
		return err
	}
	if answer.Identity != nil {
		ctx, cancel := context.WithTimeout(ctx, identityTimeout)
		defer cancel()
		if _, err := c.Do(ctx, plainGet(strings.TrimRight(answer.Identity.BaseURL, "/")+"/_matrix/identity/v2")); err != nil {
			c.Warn("Matrix: the server's identity server does not answer as it should, which messages do not need: %v", err)
		}
	}
	return nil
}

// identityTimeout is how long an identity server may take, for which the
// message waits in vain.
const identityTimeout = 3 * time.Second

var emptyDocument = regexp.MustCompile(`^\s*(null|\{\s*\})?\s*$`)

// plainGet is a request without a token. It has no body, since the networks
// that serve such addresses may refuse a GET that has one.
func plainGet(address string) *notifier.Request {
	return &notifier.Request{Method: "GET", URL: address}
}

// request is one to the API. A GET carries null, which is what servers have
// been seeing.
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

func (s *session) call(ctx context.Context, c *notifier.Client, method string, payload, answer any, path ...string) error {
	return s.do(ctx, c, s.request(method, payload, path...), answer)
}

func (s *session) do(ctx context.Context, c *notifier.Client, q *notifier.Request, answer any) error {
	resp, err := c.Do(ctx, q)
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && status.Code == 429 && status.RetryAfter == 0 {
		// Older servers say it in the body.
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

// nextNumber gives the destination's next event a number, by which the server tells
// a second try from a second message.
func (s *session) nextNumber() string {
	if s.foreign {
		return uuid.NewString()
	}
	return strconv.FormatInt(s.events.Add(1)-1, 10)
}

// isNotFound says that what was asked for is not there.
func isNotFound(err error) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && (status.Code == 404 || strings.Contains(status.Body, `"M_NOT_FOUND"`))
}

// hasStatus says that the server answered with one of the codes.
func hasStatus(err error, codes ...int) bool {
	status, ok := errors.AsType[*notifier.StatusError](err)
	return ok && slices.Contains(codes, status.Code)
}
