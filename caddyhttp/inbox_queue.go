package caddyhttp

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
)

// inboxShare is the share of the queue that all inboxes may take: at most max_size /
// inboxShare.
const inboxShare = 4

// newInboxes returns the inboxes of the keys in the queue.
func (q *openQueue) newInboxes() *inbox.Store {
	return &inbox.Store{
		Queue: q.Queue, Shared: q.shared,
		MaxSize: func() int64 { return q.app.Load().queueSettings.maxSize / inboxShare },
		Used:    func() bool { return q.app.Load().hasInboxes() },
		Removed: func(place string, n int) {
			q.inboxFull.add(n, func(n int) {
				q.log.Warn("the inboxes of keys are full, so the oldest messages were removed before their time; shorten inbox, or raise queue max_size, of which they may take a quarter",
					zap.Int("messages", n), zap.String("key", keyOfPlace(place)))
			})
		},
	}
}

// keyOfPlace returns the name of the key with a place (see delivery.place).
func keyOfPlace(place string) string {
	_, key, _ := strings.Cut(place, "\x00")
	return key
}

// hasInboxes reports whether a key of the app or of a site has an inbox.
func (a *directory) hasInboxes() bool {
	if a.resolved.hasInboxes() {
		return true
	}
	for _, r := range a.sites {
		if r.hasInboxes() {
			return true
		}
	}
	return false
}

// errInboxUnavailable returns the error for a client if an inbox cannot be read.
func errInboxUnavailable(err error) error {
	if errors.Is(err, inbox.ErrTooManyListeners) {
		return api.Errorf(http.StatusTooManyRequests, "%d clients follow the inbox of this key at this gateway already, which is the limit; end one of them", inbox.MaxListeners)
	}
	return errQueueUnavailable(err)
}
