package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
	"github.com/caddy-notify/caddy-notify/caddyhttp/source"
)

// errNotReader is the answer to everyone who may not read an inbox, whether the key has
// one or exists at all.
var errNotReader = api.Errorf(http.StatusUnauthorized, "this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication or in ?token=")

// inboxReader is a client that may read the inbox of a key.
type inboxReader struct {
	h     *Handler
	q     *openQueue
	name  string // of the key
	place string
	keep  time.Duration
	// allowed reports whether the client may still read.
	allowed func(ctx context.Context) bool
}

// inboxReader returns the client of r as a reader of the inbox of a key.
func (h *Handler) inboxReader(r *http.Request, name string) (*inboxReader, error) {
	k, err := h.inboxToRead(r, r.Context(), name)
	if err != nil {
		return nil, err
	}
	if k.inbox == 0 {
		return nil, &api.Error{Status: http.StatusNotFound, Err: errNoInbox(name)}
	}
	q, err := h.app.durable(k)
	if err != nil {
		return nil, err
	}
	return &inboxReader{h: h, q: q, name: name, place: k.home(h.site()) + "\x00" + name, keep: k.inbox, allowed: func(ctx context.Context) bool {
		now, err := h.inboxToRead(r, ctx, name)
		return err == nil && now.inbox == k.inbox
	}}, nil
}

// inboxToRead returns a key if the client of r may read its inbox. Saved keys can change
// while a client listens.
func (h *Handler) inboxToRead(r *http.Request, ctx context.Context, name string) (*key, error) {
	k, _, err := h.resolved.openKey(ctx, name)
	if h.mayManage(r) == nil {
		if err == nil {
			k, err = h.resolved.key(ctx, name)
		}
		return k, err
	}
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
		return nil, err
	}
	if err != nil || !source.Lookup("ntfy").HasToken(newSourceRequest(r), k.readers.has) {
		return nil, errNotReader
	}
	return k, nil
}

// since returns which messages a client wants that has written text, or otherwise.
func (x *inboxReader) since(text string, otherwise inbox.Since) (inbox.Since, error) {
	if text = strings.TrimSpace(text); text == "" {
		return otherwise, nil
	}
	s, err := inbox.ParseSince(text, time.Now(), caddy.ParseDuration)
	if err != nil {
		return s, &api.Error{Status: http.StatusBadRequest, Err: err}
	}
	return s, nil
}

// each calls f with the messages that are there, in their order, until it returns false.
func (x *inboxReader) each(ctx context.Context, s inbox.Since, f func(m *inbox.Message, until time.Time) bool) error {
	head, err := x.q.inboxHead(ctx, x.place)
	if err != nil || s.None {
		return err
	}
	if s.Latest {
		s.After = max(head.last, 1) - 1
	}
	for after := s.After; after < head.last; {
		messages, err := x.q.readInbox(ctx, x.place, after)
		if err != nil || len(messages) == 0 {
			return err
		}
		now := time.Now()
		for _, m := range messages {
			after = m.Cursor
			if until := m.Until(x.keep); until.After(now) && !f(m, until) {
				return nil
			}
		}
	}
	return nil
}

// streams are those of the inboxes of a site.
type streams struct {
	once   sync.Once
	ending chan struct{} // closed when they have to end
}

// stop ends the streams, for which a server that stops would wait. s may be nil.
func (s *streams) stop() {
	if s != nil {
		s.once.Do(func() { close(s.ending) })
	}
}

// keepaliveInterval is how often a stream says that it is still there.
const keepaliveInterval = 45 * time.Second

// follow calls send with each message that the client wants, with those that come in, and
// now and then with a keepalive, until the client is gone, may not read any more, or the
// configuration ends.
func (x *inboxReader) follow(ctx context.Context, s inbox.Since, send func(event string, m *inbox.Message, until time.Time) error) error {
	feed, leave, err := x.q.listen(ctx, x.place)
	if err != nil {
		return errInboxUnavailable(err)
	}
	defer leave()
	cursor := s.After
	switch {
	case s.None:
		cursor = feed.Newest()
	case s.Latest:
		cursor = max(feed.Newest(), 1) - 1
	}
	if err := send(inbox.EventOpen, nil, time.Time{}); err != nil {
		return err
	}
	timer := time.NewTimer(keepaliveInterval)
	defer timer.Stop()
	for {
		messages, more, err := feed.After(ctx, cursor)
		if err != nil {
			return err // the client comes back
		}
		now := time.Now()
		for _, m := range messages {
			cursor = m.Cursor
			if until := m.Until(x.keep); until.After(now) {
				if err := send(inbox.EventMessage, m, until); err != nil {
					return err
				}
			}
		}
		event := false
		if len(messages) == 0 {
			select {
			case <-more:
			case <-timer.C:
				event = true
			case <-ctx.Done():
				return ctx.Err()
			case <-x.h.streams.ending:
				return nil
			}
		}
		if !x.allowed(ctx) {
			return nil
		}
		if event {
			if err := send(inbox.EventKeepalive, nil, time.Time{}); err != nil {
				return err
			}
		}
		timer.Reset(keepaliveInterval)
	}
}
