package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// inboxReader is a client that may read the inbox of a key.
type inboxReader struct {
	inbox.Reader
	h    *httpAPI
	q    *gateway.Rooms
	name string // of the key
}

// inboxReader returns the client of r as a reader of the inbox of a key.
func (h *httpAPI) inboxReader(r *http.Request, name string) (*inboxReader, error) {
	k, err := h.inboxToRead(r, r.Context(), name)
	if err != nil {
		return nil, err
	}
	if k.Inbox == 0 {
		return nil, &api.Error{Status: http.StatusNotFound, Err: site.ErrNoInbox(name)}
	}
	q, err := h.app.Open(k)
	if err != nil {
		return nil, err
	}
	return &inboxReader{h: h, q: q, name: name, Reader: inbox.Reader{
		Store: q.Inboxes.Store, Place: k.Home(h.site()) + "\x00" + name, Keep: k.Inbox, Ending: h.streams.Ending,
		Allowed: func(ctx context.Context) bool {
			now, err := h.inboxToRead(r, ctx, name)
			return err == nil && now.Inbox == k.Inbox && now.ID == k.ID // another key of this name may have been saved
		},
	}}, nil
}

// inboxToRead returns a key if the client of r may read its inbox. Saved keys can change
// while a client listens.
func (h *httpAPI) inboxToRead(r *http.Request, ctx context.Context, name string) (*site.Key, error) {
	k, _, err := h.resolved.OpenKey(ctx, name)
	if h.mayManage(r) == nil {
		if err == nil {
			k, err = h.resolved.Key(ctx, name)
		}
		return k, err
	}
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusServiceUnavailable {
		return nil, err
	}
	if err != nil || !source.Lookup("ntfy").HasToken(site.NewSourceRequest(r), k.Readers.Has) {
		return nil, inbox.ErrNotReader
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
