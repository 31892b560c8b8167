package ask

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net/url"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// linkEncoding encodes the last segment of a link: the 16 bytes of the question's ID, and the 16
// bytes of the code.
var linkEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// codeSize is the size of the code of a link in bytes.
const codeSize = 16

// AnswerParameter is the query parameter of a link that chooses an answer.
const AnswerParameter = "answer"

// AnswerLabel is the label of the link to a question.
const AnswerLabel = "Answer"

// newLinkSecret sets the secret of the question's links.
func (x *Question) newLinkSecret() { _, _ = rand.Read(x.linkSecret[:]) } // never fails

// linkID returns the last segment of the link of a destination.
func (x *Question) linkID(target string) string {
	return linkEncoding.EncodeToString(append(x.ID[:], x.code(target)...))
}

// code returns the code of the link of a destination.
func (x *Question) code(target string) []byte {
	m := hmac.New(sha256.New, x.linkSecret[:])
	m.Write([]byte(target))
	return m.Sum(nil)[:codeSize]
}

// addLinks adds the links of a destination to the message of a question.
func (x *Question) addLinks(m *notifier.Message, publicURL, target string) {
	route := site.RouteAsks
	if x.Login {
		route = site.RouteConsoleAsks
	}
	page := publicURL + route + "/" + x.linkID(target)
	m.Thread = x.thread()
	m.Link, m.Choices = notifier.Link{Label: AnswerLabel, URL: page}, nil
	for _, o := range x.Options {
		m.Choices = append(m.Choices, notifier.Link{Label: o, URL: page + "?" + url.Values{AnswerParameter: {o}}.Encode()})
	}
}

// thread identifies the message of a chat that shows the question and, later, its outcome.
func (x *Question) thread() string { return "question " + x.ID.String() }

// At is a question found by the link of a destination.
type At struct {
	*Question
	Through Target
}

// IsLink reports whether segment has the form of the last segment of a link.
func IsLink(segment string) bool {
	_, _, ok := parseLink(segment)
	return ok
}

// parseLink returns the question that the last segment of a link names, and its code.
func parseLink(segment string) (id uuid.UUID, code []byte, ok bool) {
	b, err := linkEncoding.DecodeString(segment)
	if err != nil || len(b) != len(id)+codeSize {
		return id, nil, false
	}
	return uuid.UUID(b[:len(id)]), b[len(id):], true
}

// ByLink returns the question of a link with this last segment, or [ErrNone].
func (q *Questions) ByLink(ctx context.Context, segment string) (*At, error) {
	id, code, ok := parseLink(segment)
	if !ok {
		return nil, ErrNone
	}
	x, err := q.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, t := range x.Targets {
		if hmac.Equal(code, x.code(t.Hash)) {
			return &At{x, t}, nil
		}
	}
	return nil, ErrNone
}

// Links is called before an attempt of a question. See [outbox.Policy].
func (q *Questions) Links(ctx context.Context, j *queue.Job, m *notifier.Message, target, publicURL string) *queue.Outcome {
	x, err := q.Get(ctx, j.Message)
	switch {
	case err != nil && err != ErrNone: //nolint:errorlint // Get returns it as it is
		return &queue.Outcome{Postponed: true, RetryAfter: postponed}
	case err != nil || !x.IsOpen():
		return &queue.Outcome{Status: queue.Superseded, Rule: string(ruleDecided), Result: j.Result, NotSent: true}
	}
	x.addLinks(m, publicURL, target)
	return nil
}
