package inbox

import (
	"context"
	"math"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Store keeps the inboxes of keys in a queue. An inbox is known by the place of its key,
// which no other key has.
//
// Messages are records of the queue, whose names sort by cursor. Another record, the head of the
// inbox, owns them: it gives out the cursors in the transactions that accept the messages, so that
// a reader who has seen a message has seen all with smaller cursors. Inboxes count for the size of
// the queue, as all records do, but have their own limit: a full inbox must not keep alerts from
// being accepted.
type Store struct {
	Queue  *queue.Queue
	Shared bool // other gateways use the queue, too

	// Removed is called after the n oldest messages were removed to make room.
	Removed func(place string, n int)

	known known
}

// overdue is how long after the last message expires the record of a head is due.
const overdue = time.Hour

// page is the number of records that are read at once.
const page = 50

// change returns a change of a head that reads no other records. size is the size of the messages
// that it adds or removes.
func change(head queue.Hash, size int, f func(tx *queue.Tx)) *queue.Ruled {
	return &queue.Ruled{Names: []queue.Hash{head}, Size: size, Decide: func(tx *queue.Tx) error {
		f(tx)
		return nil
	}}
}

// heads returns the name of the group of all heads.
func (s *Store) heads() queue.Hash { return s.Queue.Hash("all inboxes") }

func (s *Store) headName(place string) queue.Hash {
	return s.Queue.Hash("head of the inbox\x00" + place)
}

// group returns the name of the group of the messages of an inbox.
func (s *Store) group(place string) queue.Hash { return s.Queue.Hash("inbox\x00" + place) }

// record returns the record of a head. until is when the last message expires.
func (s *Store) record(h Head, until time.Time) queue.Record {
	return queue.Record{Data: h.encode(), Due: until.Add(overdue), Group: s.heads()}
}

// Keep returns a change that adds a message to an inbox and sets its Cursor. The caller calls
// stored after the change, so that listeners get the message.
func (s *Store) Keep(place string, m *Message) (keep *queue.Ruled, stored func()) {
	var head Head
	group, name := s.group(place), s.headName(place)
	keep = change(name, m.Size(), func(tx *queue.Tx) {
		head = decodeHead(place, tx.Get(name)).added(m, time.Now())
		m.Cursor = head.Last
		tx.Put(name, s.record(head, m.Expires))
		tx.PutOwned(messageName(group, m.Cursor), queue.Record{Data: encodeMessage(place, m), Due: m.Expires, Group: group})
	})
	return keep, func() { s.known.note(head) }
}

// Read returns the first messages of an inbox after a cursor, including expired ones. If it returns
// none, no more follow.
func (s *Store) Read(ctx context.Context, place string, after Cursor) ([]*Message, error) {
	group := s.group(place)
	for name := messageName(group, after); ; {
		records, err := s.Queue.Records.Group(ctx, group, name, page)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		messages := make([]*Message, 0, len(records))
		for _, r := range records {
			name = r.Name
			if _, m, ok := decodeMessage(r.Data); ok {
				messages = append(messages, m)
			}
		}
		if len(messages) > 0 {
			return messages, nil
		}
	}
}

// Head returns the head of an inbox.
func (s *Store) Head(ctx context.Context, place string) (Head, error) {
	b, err := s.Queue.Records.Get(ctx, s.headName(place))
	return decodeHead(place, b), err
}

// due does the work that is due in a record. A damaged message stays unchanged.
func (s *Store) due(ctx context.Context, name queue.Hash, record []byte) error {
	if outbox.KindOf(record) == KindInbox {
		return s.dueHead(ctx, name, decodeHead("", record))
	}
	place, m, ok := decodeMessage(record)
	if !ok {
		return queue.ErrUnknown
	}
	for {
		n, err := s.remove(ctx, place, m.Cursor, surplus{page, math.MaxInt64})
		if err != nil || n < page {
			return err
		}
	}
}

// surplus is by how much an inbox exceeds its limits.
type surplus struct {
	count int
	size  int64
}

// remove removes the oldest messages of an inbox up to a cursor until there is no surplus, at most
// a page of them. It returns how many it has removed.
func (s *Store) remove(ctx context.Context, place string, upTo Cursor, more surplus) (n int, err error) {
	group := s.group(place)
	records, err := s.Queue.Records.Group(ctx, group, queue.Hash{}, page)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	var oldest []*Message
	size := 0
	for _, r := range records {
		if len(oldest) >= more.count && int64(size) >= more.size {
			break
		}
		if _, m, ok := decodeMessage(r.Data); ok && m.Cursor <= upTo {
			oldest, size = append(oldest, m), size+m.Size()
		}
	}
	if len(oldest) == 0 {
		return 0, nil
	}
	var head Head
	name := s.headName(place)
	err = s.Queue.Records.Apply(ctx, change(name, size, func(tx *queue.Tx) {
		head = decodeHead(place, tx.Get(name))
		for _, m := range oldest {
			if m.Cursor > head.Gone { // otherwise another gateway has removed it
				head = head.removed(m)
				tx.DeleteOwned(messageName(group, m.Cursor))
			}
		}
		tx.Put(name, s.record(head, time.Now()))
	}))
	if err == nil {
		s.known.note(head)
	}
	return len(oldest), err
}

// Clear removes all messages of an inbox.
func (s *Store) Clear(ctx context.Context, place string) error {
	head, err := s.Head(ctx, place)
	for n := page; err == nil && n == page; {
		n, err = s.remove(ctx, place, head.Last, surplus{page, math.MaxInt64})
	}
	return err
}

// dueHead removes the head of an empty inbox.
func (s *Store) dueHead(ctx context.Context, name queue.Hash, before Head) error {
	messages, err := s.Read(ctx, before.Place, 0)
	if err != nil {
		return err
	}
	return s.Queue.Records.Apply(ctx, change(name, 0, func(tx *queue.Tx) {
		if head := decodeHead(before.Place, tx.Get(name)); len(messages) > 0 || head.Last != before.Last {
			tx.Put(name, s.record(head, time.Now()))
		} else {
			tx.Delete(name)
		}
	}))
}
