package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// InboxReader is a client that may read the inbox of a key.
type InboxReader struct {
	inbox.Reader
	h    *API
	q    *gateway.Rooms
	name string // of the key
}

// InboxReader returns the client of r as a reader of the inbox of a key.
func (h *API) InboxReader(r *http.Request, name string) (*InboxReader, error) {
	k, err := h.inboxToRead(r, r.Context(), name)
	if err != nil {
		return nil, err
	}
	if k.Inbox == 0 {
		return nil, &api.Error{Status: http.StatusNotFound, Err: site.ErrNoInbox(name)}
	}
	q, err := h.App.Open(k)
	if err != nil {
		return nil, err
	}
	return &InboxReader{h: h, q: q, name: name, Reader: inbox.Reader{
		Store: q.Inboxes.Store, Place: k.Home(h.Site()) + "\x00" + name, Keep: k.Inbox, Ending: h.Streams.Ending,
		Allowed: func(ctx context.Context) bool {
			now, err := h.inboxToRead(r, ctx, name)
			return err == nil && now.Inbox == k.Inbox && now.ID == k.ID // another key of this name may have been saved
		},
	}}, nil
}

// inboxToRead returns a key if the client of r may read its inbox. Saved keys can change
// while a client listens.
func (h *API) inboxToRead(r *http.Request, ctx context.Context, name string) (*site.Key, error) {
	k, _, err := h.Resolved.OpenKey(ctx, name)
	if h.MayManage(r) == nil {
		if err == nil {
			k, err = h.Resolved.Key(ctx, name)
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
func (x *InboxReader) since(text string, otherwise inbox.Since) (inbox.Since, error) {
	if text = strings.TrimSpace(text); text == "" {
		return otherwise, nil
	}
	s, err := inbox.ParseSince(text, time.Now(), x.h.ParseDuration)
	if err != nil {
		return s, &api.Error{Status: http.StatusBadRequest, Err: err}
	}
	return s, nil
}
