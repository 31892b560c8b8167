package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The queue has no texts of messages that it has delivered. Where a site keeps titles, they stand in
// the summaries of messages; others come from the inboxes of their keys. Both are for clients that may
// read the key.

// titles finds the titles of messages for the client of a request.
type titles struct {
	h     *messagePages
	r     *http.Request
	found *httpapi.Lookup         // of the page's key; nil for none
	keys  map[string]*readableKey // that were asked for
}

// readableKey is a key for the client of a request. The zero value is a key that it may not read.
type readableKey struct {
	place site.Place
	inbox *httpapi.InboxReader // nil for none
}

// titles returns a finder of titles for the client of r.
func (h *messagePages) titles(r *http.Request) *titles {
	return &titles{h: h, r: r, keys: map[string]*readableKey{}}
}

// key returns a key as the client may read it.
func (t *titles) key(name string) (*readableKey, error) {
	if x, ok := t.keys[name]; ok {
		return x, nil
	}
	lookup := t.h.Lookup(name)
	if t.found != nil && t.found.Name == name {
		lookup = t.found
	}
	x := &readableKey{}
	k, err := t.h.api.Inboxes.MayRead(t.r, lookup)
	if err == nil {
		x.place = k.Place(t.h.Site())
		x.inbox, err = t.h.api.Inboxes.Reader(t.r, lookup)
	}
	if e, ok := api.ErrorOf(err); err != nil && (!ok || e.Status == http.StatusServiceUnavailable) {
		return nil, err
	}
	t.keys[name] = x
	return x, nil
}

// setKept sets the title of a message that stands in its summary, if the client may read it. A later key
// of the same name has another place. t may be nil.
func (t *titles) setKept(m *view.ListedMessage, of *queue.Message) error {
	var s queued.Summary
	if t == nil || s.Decode(of.Summary) != nil || s.Title == "" {
		return nil //nolint:nilerr // what cannot be read has no title
	}
	x, err := t.key(s.Key)
	if err == nil && x.place == s.At {
		m.Title = s.Title
	}
	return err
}

// set sets the titles of messages in the queue that inboxes have. They arrived one after the other, so the messages
// of a key are in one range of its inbox.
func (t *titles) set(ctx context.Context, messages []view.ListedMessage) error {
	if !t.h.Resolved.HasInboxes() {
		return nil
	}
	ofKey := map[string][]*view.ListedMessage{}
	for i := range messages {
		if m := &messages[i]; m.Key != "" && m.ID != "" {
			ofKey[m.Key] = append(ofKey[m.Key], m)
		}
	}
	for key, messages := range ofKey {
		x, err := t.key(key)
		if err != nil {
			return err
		}
		if x.inbox != nil {
			if err := x.inbox.SetTitles(ctx, messages); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofPlanned returns the title of a planned message, which no inbox and no summary has yet, if the client
// may read its key.
func (t *titles) ofPlanned(ctx context.Context, q *gateway.Rooms, key string, id uuid.UUID) (string, error) {
	x, err := t.key(key)
	if err != nil || x.inbox == nil && !(t.h.Resolved.Titles && x.place != site.Place{}) {
		return "", err
	}
	return q.Planned.Title(ctx, id)
}

// inboxAt returns the address of the inbox of a key, at the message that arrived at a time,
// relative to a request.
func inboxAt(r *http.Request, m *view.ListedMessage) string {
	since := url.Values{"since": {timetext.FormatSeconds(m.Time)}}
	return inboxAddress(r, m.Key) + "?" + since.Encode()
}
