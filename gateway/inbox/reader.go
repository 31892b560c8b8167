package inbox

import (
	"context"
	"time"
)

// Reader reads an inbox for a client.
type Reader struct {
	Store *Store
	Place string

	// Keep is how long the key keeps messages. Older messages cannot be read, although they are
	// still stored if Keep was longer before.
	Keep time.Duration

	// Allowed reports whether the client may still read, and Ending is closed when streams
	// have to end. Only [Reader.Follow] needs them.
	Allowed func(ctx context.Context) bool
	Ending  <-chan struct{}
}

// readable calls f with each message that can be read, and until when. It reports whether f has
// returned true for all of them.
func (r *Reader) readable(messages []*Message, f func(m *Message, until time.Time) bool) bool {
	now := time.Now()
	for _, m := range messages {
		if until := m.until(r.Keep); until.After(now) && !f(m, until) {
			return false
		}
	}
	return true
}

// between calls f with the messages after a cursor that can be read, in their order, until f
// returns false or end is reached.
func (r *Reader) between(ctx context.Context, after, end Cursor, f func(m *Message, until time.Time) bool) error {
	for after < end {
		messages, err := r.Store.Read(ctx, r.Place, after)
		if err != nil || len(messages) == 0 || !r.readable(messages, f) {
			return err
		}
		after = messages[len(messages)-1].Cursor
	}
	return nil
}

// Each calls f with the stored messages that the client wants, in their order, until f returns
// false.
func (r *Reader) Each(ctx context.Context, s Since, f func(m *Message, until time.Time) bool) error {
	head, err := r.Store.Head(ctx, r.Place)
	if err != nil {
		return err
	}
	return r.between(ctx, s.from(head.Last), head.Last, f)
}

// storingTime is the maximum time from when a message comes in until it is in the inbox of its key.
const storingTime = time.Minute

// CameIn calls f with the messages that came in between from and to, until f returns false. It may
// include messages that came in up to a minute later.
func (r *Reader) CameIn(ctx context.Context, from, to time.Time, f func(m *Message) bool) error {
	return r.between(ctx, max(cursorAt(from), 1)-1, cursorAt(to.Add(storingTime)), func(m *Message, _ time.Time) bool { return f(m) })
}

// Published returns the cursor of the message with a publisher's ID, or 0 if there is none.
func (r *Reader) Published(ctx context.Context, id string) (c Cursor, err error) {
	err = r.Each(ctx, Since{}, func(m *Message, _ time.Time) bool {
		if m.PublishedID() == id {
			c = m.Cursor
		}
		return c == 0
	})
	return c, err
}

// The events of streams.
const (
	EventOpen      = "open"
	EventKeepalive = "keepalive"
	EventMessage   = "message"
)

// KeepaliveInterval is how often a stream says that it is still there.
const KeepaliveInterval = 45 * time.Second

// Follow calls send with the event that opens a stream, with each stored message that the client
// wants, and then with each new message and with keepalives. It ends when ctx is done, the client
// may no longer read, or streams have to end.
func (r *Reader) Follow(ctx context.Context, s Since, send func(event string, m *Message, until time.Time) error) error {
	feed, leave, err := r.Store.Listen(ctx, r.Place)
	if err != nil {
		return err
	}
	defer leave()
	cursor := s.from(feed.Newest())
	if err := send(EventOpen, nil, time.Time{}); err != nil {
		return err
	}
	timer := time.NewTimer(KeepaliveInterval)
	defer timer.Stop()
	for {
		messages, more, err := feed.after(ctx, cursor)
		if err != nil {
			return err // the client comes back
		}
		if !r.readable(messages, func(m *Message, until time.Time) bool {
			err = send(EventMessage, m, until)
			return err == nil
		}) {
			return err
		}
		alive := false
		if len(messages) > 0 {
			cursor = messages[len(messages)-1].Cursor
		} else {
			select {
			case <-more:
			case <-timer.C:
				alive = true
			case <-ctx.Done():
				return ctx.Err()
			case <-r.Ending:
				return nil
			}
		}
		if !r.Allowed(ctx) {
			return nil
		}
		if alive {
			if err := send(EventKeepalive, nil, time.Time{}); err != nil {
				return err
			}
		}
		timer.Reset(KeepaliveInterval)
	}
}
