package inbox

import (
	"context"
	"sync"
)

// Feed gives the listeners of an inbox its messages as they come in. It keeps the last messages, so
// that each is read from the store once for all listeners. A slow listener holds up no other: each
// asks for the messages after its own position, and one that has fallen too far behind reads the
// store itself.
type Feed struct {
	// Read returns the first messages after a cursor, in their order. If there are none,
	// no more follow.
	Read func(ctx context.Context, after Cursor) ([]*Message, error)

	mu      sync.Mutex
	changed chan struct{} // closed when there may be messages after last
	newest  Cursor        // of the messages that are known to be there

	reading sync.Mutex // held while the store is read for all listeners
	from    Cursor     // kept has all messages after it
	last    Cursor     // of kept, or from
	kept    []*Message
	size    int // of kept
}

// The bounds of what a feed keeps.
const (
	maxKept     = 100
	maxKeptSize = 256 << 10
)

// newFeed returns the feed of an inbox. last is the cursor of its last message.
func newFeed(last Cursor, read func(ctx context.Context, after Cursor) ([]*Message, error)) *Feed {
	return &Feed{Read: read, changed: make(chan struct{}), newest: last, from: last, last: last}
}

// tell says that there is a message with a cursor.
func (f *Feed) tell(c Cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c > f.newest {
		f.newest = c
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// Newest returns the cursor of the last known message.
func (f *Feed) Newest() Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// after returns the first messages after a cursor. If there are none, more is closed when
// there may be some. Messages must not be changed.
func (f *Feed) after(ctx context.Context, c Cursor) (messages []*Message, more <-chan struct{}, err error) {
	f.mu.Lock()
	newest, more := f.newest, f.changed
	f.mu.Unlock()
	if c >= newest {
		return nil, more, nil
	}
	kept, ok, err := f.keep(ctx, c, newest)
	if !ok && err == nil {
		kept, err = f.Read(ctx, c)
	}
	return kept, more, err
}

// unknow undoes tell for a message that the store does not list: it is gone, or not listed yet, and
// then another tell follows. The caller holds reading.
func (f *Feed) unknow(c Cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == c {
		f.newest = f.last
	}
}

// keep reads the messages up to newest, and returns the kept messages after c. It reports false if
// some messages after c are not kept.
func (f *Feed) keep(ctx context.Context, c, newest Cursor) ([]*Message, bool, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if c < f.from {
		return nil, false, nil
	}
	for f.last < newest {
		messages, err := f.Read(ctx, f.last)
		if err != nil {
			return nil, false, err
		}
		if len(messages) == 0 {
			f.unknow(newest)
			break
		}
		for _, m := range messages {
			f.last = m.Cursor
			f.kept, f.size = append(f.kept, m), f.size+m.Size()
		}
		drop := 0
		for len(f.kept)-drop > maxKept || f.size > maxKeptSize && len(f.kept)-drop > 1 {
			f.from, f.size = f.kept[drop].Cursor, f.size-f.kept[drop].Size()
			drop++
		}
		f.kept = append([]*Message(nil), f.kept[drop:]...)
	}
	if c < f.from {
		return nil, false, nil
	}
	for i, m := range f.kept {
		if m.Cursor > c {
			return f.kept[i:len(f.kept):len(f.kept)], true, nil
		}
	}
	return nil, true, nil
}
