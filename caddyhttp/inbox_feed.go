package caddyhttp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The limits of inboxes.
const (
	maxListeners    = 100     // of a key at a gateway
	maxInboxCount   = 10_000  // messages of a key
	maxInboxesCount = 100_000 // messages of all keys
	inboxShare      = 4       // all take at most max_size / inboxShare bytes
)

// inboxes are the inboxes of the keys in a queue: who listens to them, and how large they
// are. The zero value is ready for use.
type inboxes struct {
	full logLimiter // messages that were removed because there was no room
	slow logLimiter // listeners that were too slow

	mu    sync.Mutex
	feeds map[string]*keyFeed  // by the place of the key; those with listeners
	heads map[string]inboxHead // as far as they are known
	read  time.Time            // when all heads were read
}

// keyFeed is the feed of the inbox of a key.
type keyFeed struct {
	*inbox.Feed
	listeners int
}

// note takes note of the head of an inbox, and tells its listeners.
func (x *inboxes) note(h inboxHead) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.heads == nil {
		x.heads = map[string]inboxHead{}
	}
	switch known, ok := x.heads[h.place]; {
	case h.count <= 0:
		delete(x.heads, h.place)
	case !ok || known.last <= h.last:
		x.heads[h.place] = h
	}
	if f := x.feeds[h.place]; f != nil {
		f.Tell(h.last)
	}
}

var errTooManyListeners = api.Errorf(http.StatusTooManyRequests, "%d clients follow the inbox of this key at this gateway already, which is the limit; end one of them", maxListeners)

// listen returns the feed of the inbox of the key with a place. The caller calls leave
// when it does not listen any more.
func (q *openQueue) listen(ctx context.Context, place string) (f *inbox.Feed, leave func(), err error) {
	// What comes in between the two times that the head is read is after the first, and
	// the feed is told of it.
	before, err := q.inboxHead(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	if f, leave, err = q.inboxes.join(place, func() *inbox.Feed {
		return inbox.NewFeed(before.last, func(ctx context.Context, after inbox.Cursor) ([]*inbox.Message, error) {
			return q.readInbox(ctx, place, after)
		})
	}); err != nil {
		return nil, nil, err
	}
	now, err := q.inboxHead(ctx, place)
	if err != nil {
		leave()
		return nil, nil, err
	}
	f.Tell(now.last)
	return f, leave, nil
}

// join counts a listener in. newFeed makes the feed for the first one.
func (x *inboxes) join(place string, newFeed func() *inbox.Feed) (f *inbox.Feed, leave func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.feeds[place]
	if k == nil {
		k = &keyFeed{Feed: newFeed()}
		if x.feeds == nil {
			x.feeds = map[string]*keyFeed{}
		}
		x.feeds[place] = k
	}
	if k.listeners == maxListeners {
		return nil, nil, errTooManyListeners
	}
	k.listeners++
	return k.Feed, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if k.listeners--; k.listeners == 0 {
			delete(x.feeds, place)
		}
	}, nil
}

// followed returns the places of the keys that somebody listens to.
func (x *inboxes) followed() (places []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for place := range x.feeds {
		places = append(places, place)
	}
	return places
}

// refresh reads what other gateways may have changed. The queue calls it each second.
func (q *openQueue) refresh(ctx context.Context) {
	q.refreshSilences(ctx)
	q.refreshInboxes(ctx)
	q.refreshDevices(ctx)
}

// inboxesRead is how often the heads of all inboxes are read that other gateways use, too.
const inboxesRead = 30 * time.Second

// refreshInboxes tells listeners what other gateways have accepted, and makes room.
func (q *openQueue) refreshInboxes(ctx context.Context) {
	x := &q.inboxes
	for _, place := range x.followed() {
		h, err := q.inboxHead(ctx, place)
		if err != nil {
			return // it is tried again in a second
		}
		x.note(h)
	}
	x.mu.Lock()
	due := x.read.IsZero() || q.shared && time.Since(x.read) > inboxesRead
	x.mu.Unlock()
	if due && q.app.Load().hasInboxes() {
		if err := q.readInboxes(ctx); err != nil {
			return
		}
	}
	q.trimInboxes(ctx)
}

// readInboxes reads the heads of all inboxes.
func (q *openQueue) readInboxes(ctx context.Context) error {
	began := time.Now()
	for after := (queue.Hash{}); ; {
		records, err := q.CallersGroup(ctx, q.inboxHeads(), after, inboxPage)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			q.inboxes.note(decodeInboxHead("", r.Data))
		}
		if len(records) < inboxPage {
			break
		}
	}
	q.inboxes.mu.Lock()
	defer q.inboxes.mu.Unlock()
	q.inboxes.read = began
	return nil
}

// crowded returns the inbox whose oldest messages have to go, or "" if there is room
// for all: one with too many messages, or the largest one if all together take too much.
func (x *inboxes) crowded(maxSize int64) (place string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var largest, all inboxHead
	for _, h := range x.heads {
		if h.count > maxInboxCount {
			return h.place
		}
		if all.count, all.size = all.count+h.count, all.size+h.size; h.size > largest.size {
			largest = h
		}
	}
	if all.size > maxSize || all.count > maxInboxesCount {
		return largest.place
	}
	return ""
}

// maxTrims is the maximum number of pages of messages that are removed at once.
const maxTrims = 20

// trimInboxes removes the oldest messages where there are too many.
func (q *openQueue) trimInboxes(ctx context.Context) {
	for range maxTrims {
		place := q.inboxes.crowded(q.app.Load().queueSettings.inboxSize())
		if place == "" {
			return
		}
		n, err := q.removeFromInbox(ctx, place, math.MaxUint64)
		if err != nil {
			return // it is tried again in a second
		}
		if n == 0 { // what is known of it is wrong
			q.inboxes.forget(place)
			continue
		}
		q.inboxes.full.add(n, func(n int) {
			q.log.Warn("the inboxes of keys are full, so the oldest messages were removed before their time; shorten inbox, or raise queue max_size, of which they may take a quarter",
				zap.Int("messages", n), zap.String("key", keyOfPlace(place)))
		})
	}
}

func (x *inboxes) forget(place string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.heads, place)
}

// inboxSize returns how many bytes all inboxes may take.
func (s *queueSettings) inboxSize() int64 { return s.maxSize / inboxShare }

// hasInboxes reports whether a key of the app or of a site has an inbox.
func (a *App) hasInboxes() bool {
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
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e
	}
	return errQueueUnavailable(err)
}
