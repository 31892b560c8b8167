package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// The queue has no texts. Titles of messages come from the inboxes of their keys, for clients that
// may read them.

// inboxTitles finds the titles of messages for the client of a request.
type inboxTitles struct {
	h     *messagePages
	r     *http.Request
	found *httpapi.Lookup // of the page's key; nil for none
	// readers are the readers of the keys asked for; nil for a key without an inbox.
	readers map[string]*httpapi.InboxReader
}

// titles returns a finder of titles for the client of r.
func (h *messagePages) titles(r *http.Request) *inboxTitles {
	return &inboxTitles{h: h, r: r, readers: map[string]*httpapi.InboxReader{}}
}

// reader returns the client as a reader of a key's inbox, or nil if there is no inbox or the client
// may not read it.
func (t *inboxTitles) reader(key string) (*httpapi.InboxReader, error) {
	if x, ok := t.readers[key]; ok {
		return x, nil
	}
	lookup := t.h.Lookup(key)
	if t.found != nil && t.found.Name == key {
		lookup = t.found
	}
	x, err := t.h.api.Inboxes.Reader(t.r, lookup)
	if e, ok := api.ErrorOf(err); err != nil && (!ok || e.Status == http.StatusServiceUnavailable) {
		return nil, err
	}
	t.readers[key] = x
	return x, nil
}

// set sets the titles of messages in the queue. They arrived one after the other, so the messages
// of a key are in one range of its inbox.
func (t *inboxTitles) set(ctx context.Context, messages []view.ListedMessage) error {
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
		x, err := t.reader(key)
		if err != nil {
			return err
		}
		if x != nil {
			if err := x.SetTitles(ctx, messages); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofPlanned returns the title of a planned message, which no inbox has yet, if the client may read the
// inbox of its key.
func (t *inboxTitles) ofPlanned(ctx context.Context, q *gateway.Rooms, key string, id uuid.UUID) (string, error) {
	if !t.h.Resolved.HasInboxes() {
		return "", nil
	}
	if x, err := t.reader(key); x == nil || err != nil {
		return "", err
	}
	return q.Planned.Title(ctx, id)
}

// inboxAt returns the address of the inbox of a key, at the message that arrived at a time,
// relative to a request.
func inboxAt(r *http.Request, m *view.ListedMessage) string {
	since := url.Values{"since": {m.Time.UTC().Truncate(time.Second).Format(time.RFC3339)}}
	return inboxAddress(r, m.Key) + "?" + since.Encode()
}
