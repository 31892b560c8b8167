package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Inboxes shows the messages in the inboxes of keys to their readers: /notify/{KEY}/messages, its
// stream, and the addresses of ntfy's clients.
type Inboxes struct {
	*Base
	sources *sources
	streams *inbox.Streams
}

// The bounds of a list of messages.
const (
	listedMessages = 1000    // in JSON
	listedSize     = 4 << 20 // bytes of their texts
	shownMessages  = 200     // on the page, and in the feed
)

// inboxSinceHeader is the header in which browsers send the last event of their stream.
const inboxSinceHeader = "Last-Event-ID"

// MessagesJSON is the answer of /notify/{KEY}/messages.
type MessagesJSON struct {
	Messages []feed.JSON `json:"messages"`
	Next     *string     `json:"next"` // the since of the following messages; nil if there are none
}

// serveInbox answers a request for the messages in a key's inbox, or for a stream of them.
func (h *Inboxes) serveInbox(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	err := h.doInbox(w, r, at)
	if err == nil {
		return nil
	}
	return h.ErrorResponse(r, err)
}

func (h *Inboxes) doInbox(w http.ResponseWriter, r *http.Request, at *Route) error {
	w.Header().Set("Cache-Control", "no-store")
	x, err := h.Reader(r, at.Lookup())
	if err != nil {
		return err
	}
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	since := r.URL.Query().Get("since")
	if at.Pattern == RouteInboxStream {
		s, err := x.since(cmp.Or(since, r.Header.Get(inboxSinceHeader)), inbox.Since{None: true})
		if err != nil {
			return err
		}
		return x.stream(w, r, s)
	}
	if feed.WantsAtom(r) {
		return x.writeAtom(w, r, since)
	}
	if h.Resolved.Page && api.PrefersHTML(r) {
		return x.writePage(w, r, since)
	}
	s, err := x.since(since, inbox.Since{})
	if err != nil {
		return err
	}
	return x.writeList(w, r, s)
}

// writeList writes the first messages that the client asks for.
func (x *InboxReader) writeList(w http.ResponseWriter, r *http.Request, s inbox.Since) error {
	out, size := MessagesJSON{Messages: []feed.JSON{}}, 0
	err := x.Each(r.Context(), s, func(m *inbox.Message, until time.Time) bool {
		if len(out.Messages) == listedMessages || size > listedSize {
			out.Next = &out.Messages[len(out.Messages)-1].ID
			return false
		}
		size += m.Size()
		out.Messages = append(out.Messages, feed.NewJSON(m, until))
		return true
	})
	if err != nil {
		return Answer(err)
	}
	return WriteJSON(w, http.StatusOK, out)
}

// writePage writes the page with the last messages that the client asks for, the newest first.
func (x *InboxReader) writePage(w http.ResponseWriter, r *http.Request, since string) error {
	since = cmp.Or(since, view.InboxSince)
	s, err := x.since(since, inbox.Since{})
	if err != nil {
		return err
	}
	if at, err := time.Parse(time.RFC3339, since); err == nil {
		since = timetext.FormatSeconds(at)
	}
	p := view.InboxPage{Key: x.name, Keep: view.Length(x.Keep), Since: since}
	messages, more, err := x.newest(r.Context(), s)
	if err != nil {
		p.Problem = ErrQueueUnread
	}
	for _, m := range slices.Backward(messages) {
		p.Messages = append(p.Messages, view.InboxMessage{
			ID: m.Cursor.String(), Time: m.Time, Type: string(m.Type), Title: m.Title,
			Text: m.Text(), Cut: m.Cut,
		})
	}
	p.More = more
	return x.h.WritePage(w, r, http.StatusOK, "", p)
}

// newest returns the last messages that the client asks for, in order, and reports whether there
// are earlier ones.
func (x *InboxReader) newest(ctx context.Context, s inbox.Since) (messages []*inbox.Message, more bool, err error) {
	err = x.Each(ctx, s, func(m *inbox.Message, _ time.Time) bool {
		if len(messages) == shownMessages {
			messages, more = append(messages[:0], messages[1:]...), true
		}
		messages = append(messages, m)
		return true
	})
	return messages, more, err
}

// feedSince is the age of messages in the feed by default.
const feedSince = "7d"

// writeAtom writes a feed with the last messages that the client asks for, the newest first.
func (x *InboxReader) writeAtom(w http.ResponseWriter, r *http.Request, since string) error {
	s, err := x.since(cmp.Or(since, feedSince), inbox.Since{})
	if err != nil {
		return err
	}
	messages, _, err := x.newest(r.Context(), s)
	if err != nil {
		return Answer(err)
	}
	w.Header().Set("Content-Type", feed.MediaAtom+"; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return feed.NewAtom(x.Place, x.name, messages, time.Now()).Encode(w)
}

// stream sends messages to the client as they arrive: as server-sent events if it accepts them, or
// else as lines of JSON.
func (x *InboxReader) stream(w http.ResponseWriter, r *http.Request, s inbox.Since) error {
	if acceptsEvents(r) {
		return x.streamHTTP(w, r, s, "text/event-stream", func(event string, m *inbox.Message, until time.Time) ([]byte, error) {
			if m == nil {
				return []byte(": " + event + "\n\n"), nil
			}
			data, err := json.Marshal(feed.NewJSON(m, until))
			return slices.Concat([]byte("id: "+m.Cursor.String()+"\ndata: "), data, []byte("\n\n")), err
		})
	}
	return x.streamHTTP(w, r, s, "application/x-ndjson", func(event string, m *inbox.Message, until time.Time) ([]byte, error) {
		line := feed.JSON{}
		if m != nil {
			line = feed.NewJSON(m, until)
		}
		line.Event = event
		data, err := json.Marshal(line)
		return append(data, '\n'), err
	})
}

// acceptsEvents reports whether the client of r accepts server-sent events.
func acceptsEvents(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Accept"], func(v string) bool { return strings.Contains(strings.ToLower(v), "text/event-stream") })
}

// writeTimeout is how long a client may take to read an event.
const writeTimeout = 30 * time.Second

// streamHTTP sends messages to the client as they arrive, written by encode.
func (x *InboxReader) streamHTTP(w http.ResponseWriter, r *http.Request, s inbox.Since, contentType string,
	encode func(event string, m *inbox.Message, until time.Time) ([]byte, error),
) error {
	c := http.NewResponseController(w)
	begun := false
	leave, err := x.enterWaiting(r)
	if err != nil {
		return err
	}
	defer leave()
	err = x.Follow(r.Context(), s, func(event string, m *inbox.Message, until time.Time) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer events
			w.WriteHeader(http.StatusOK)
		}
		data, err := encode(event, m, until)
		if err != nil || len(data) == 0 {
			return err
		}
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // only a writer in a test has no deadlines
		if _, err := w.Write(data); err != nil {
			return err
		}
		return c.Flush()
	})
	_ = c.SetWriteDeadline(time.Time{})
	if err != nil && !begun {
		return Answer(err)
	}
	x.ended(r, err)
	return nil
}

// ended logs why a stream was ended by the server.
func (x *InboxReader) ended(r *http.Request, err error) {
	if err == nil || r.Context().Err() != nil && !isTimeout(err) {
		return
	}
	if isTimeout(err) {
		x.q.Inboxes.Slow.Add(1, func(n int) {
			x.q.Outbox.Log.Info("clients that follow the inbox of a key were too slow, and have to come back", zap.Int("clients", n),
				zap.String("key", x.name))
		})
		return
	}
	x.h.Log.Debug("a stream of an inbox has ended", zap.String("key", x.name), zap.Error(err))
}

// isTimeout reports whether err means that a write took too long.
func isTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// InboxReader is a client that may read the inbox of a key.
type InboxReader struct {
	inbox.Reader
	h    *Inboxes
	q    *gateway.Rooms
	name string // name of the key
	at   site.Place
}

// enterWaiting counts the client of r among the clients that wait for the key.
func (x *InboxReader) enterWaiting(r *http.Request) (leave func(), err error) {
	return x.h.enterWaiting(r, x.at)
}

// Reader returns the client of r as a reader of the inbox of a key.
func (h *Inboxes) Reader(r *http.Request, key *Lookup) (*InboxReader, error) {
	k, err := h.MayRead(r, key)
	if err != nil {
		return nil, err
	}
	name := key.Name
	if k.Inbox == 0 {
		return nil, &api.Error{
			Status: http.StatusNotFound,
			Err:    fmt.Errorf("the key %s has no inbox, so its messages cannot be read; the operator can add inbox 7d to the key", name),
		}
	}
	q, err := h.App.Open(k)
	if err != nil {
		return nil, err
	}
	at := k.Place(h.Site())
	return &InboxReader{h: h, q: q, name: name, at: at, Reader: inbox.Reader{
		Store: q.Inboxes.Store, Place: at.String(), Keep: k.Inbox, Ending: h.streams.Ending,
		Allowed: func(ctx context.Context) bool {
			now, err := h.inboxToRead(r, ctx, h.Lookup(name))
			return err == nil && now.Inbox == k.Inbox && now.ID == k.ID // another key of this name may have been saved
		},
	}}, nil
}

// MayRead returns a key if the client of r may read its messages. The key need not have an inbox.
func (h *Inboxes) MayRead(r *http.Request, key *Lookup) (*site.Key, error) {
	return h.inboxToRead(r, r.Context(), key)
}

// inboxToRead returns a key if the client of r may read its inbox. Saved keys can change
// while a client listens.
func (h *Inboxes) inboxToRead(r *http.Request, ctx context.Context, key *Lookup) (*site.Key, error) {
	if h.MayManage(r) == nil {
		return key.Key(ctx)
	}
	k, _, err := key.open(ctx)
	if e, ok := api.ErrorOf(err); ok && e.Status == http.StatusServiceUnavailable {
		return nil, err
	}
	if err != nil || !source.Lookup("ntfy").HasToken(source.NewRequest(r), k.Readers.Has) {
		return nil, inbox.ErrNotReader
	}
	return k, nil
}

// since returns the beginning of the messages that a client asks for with text, or otherwise if
// text is empty.
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

// maxWords is how much of the text of a message without a title is shown in place of a title, in
// bytes.
const maxWords = 100

// SetTitles sets the titles of messages of the key of x.
func (x *InboxReader) SetTitles(ctx context.Context, messages []*view.ListedMessage) error {
	missing := make(map[string]*view.ListedMessage, len(messages))
	first, last := messages[0].Time, messages[0].Time
	for _, m := range messages {
		missing[m.ID] = m
		if m.Time.Before(first) {
			first = m.Time
		}
		if m.Time.After(last) {
			last = m.Time
		}
	}
	return x.CameIn(ctx, first, last, func(kept *inbox.Message) bool {
		if m := missing[kept.ID]; m != nil {
			if m.Title, m.Kept = kept.Title, true; m.Title == "" {
				m.Words = markup.TruncateBytes(markup.OneLine(kept.Text()), maxWords)
			}
			delete(missing, kept.ID)
		}
		return len(missing) > 0
	})
}
