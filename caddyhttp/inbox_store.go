package caddyhttp

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/inbox"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The messages in the inbox of a key are records of the queue, whose names sort by their
// cursors. A further record, the head of the inbox, owns them: it gives out the cursors in
// the transactions that accept the messages, so that whoever has seen a message has seen
// all with smaller cursors. What is in the inboxes counts for max_size, as all records do,
// but is at most a quarter of it: an inbox that is full must not keep alerts from being
// accepted.
const (
	kindInboxHead    = 'I'
	kindInboxMessage = 'm'
)

// inboxHead is what is known of an inbox as a whole.
type inboxHead struct {
	place string
	last  inbox.Cursor // of the last message that came in
	gone  inbox.Cursor // of the last message that was removed
	count int
	size  int64
}

// The fields of the record of a head, and of a message.
const (
	headPlace wire.Field = iota + 1
	headLast
	headGone
	headCount
	headSize
)

const (
	inboxPlace wire.Field = iota + 1
	inboxMessage
)

// inboxOverdue is how long after its time the record of a head is looked at again.
const inboxOverdue = time.Hour

// record returns the record of a head. The last message is removed at a time.
func (x *inboxHead) record(q *openQueue, until time.Time) queue.Record {
	b := wire.AppendText(nil, headPlace, x.place)
	b = wire.AppendNumber(b, headLast, int64(x.last)) //nolint:gosec // microseconds since 1970
	b = wire.AppendNumber(b, headGone, int64(x.gone)) //nolint:gosec // likewise
	b = wire.AppendNumber(wire.AppendNumber(b, headCount, max(x.count, 0)), headSize, max(x.size, 0))
	return queue.Record{Data: encodeRecord(kindInboxHead, b), Due: until.Add(inboxOverdue), Group: q.inboxHeads()}
}

// decodeInboxHead returns the head in a record. A damaged one, or none, counts nothing.
func decodeInboxHead(place string, record []byte) inboxHead {
	x := inboxHead{place: place}
	if len(record) == 0 || record[0] != kindInboxHead {
		return x
	}
	for r := wire.NewReader(record[1:]); r.Next(); {
		switch r.Field {
		case headPlace:
			x.place = r.Text()
		case headLast:
			x.last = inbox.Cursor(r.Int64()) //nolint:gosec // as it was appended
		case headGone:
			x.gone = inbox.Cursor(r.Int64()) //nolint:gosec // likewise
		case headCount:
			x.count = r.Int()
		case headSize:
			x.size = r.Int64()
		}
	}
	return x
}

// inboxHeads returns the name of the group of all heads.
func (q *openQueue) inboxHeads() queue.Hash { return q.Hash("all inboxes") }

// inboxHeadName returns the name of the head of the inbox of the key with a place.
func (q *openQueue) inboxHeadName(place string) queue.Hash {
	return q.Hash("head of the inbox\x00" + place)
}

// inboxGroup returns the name of the group of the messages of an inbox.
func (q *openQueue) inboxGroup(place string) queue.Hash { return q.Hash("inbox\x00" + place) }

// inboxMessageName returns the name of the record of a message. Those of a group sort by
// the cursors.
func inboxMessageName(group queue.Hash, c inbox.Cursor) (name queue.Hash) {
	copy(name[:], group[:8])
	binary.BigEndian.PutUint64(name[8:], uint64(c))
	return name
}

// keptMessage is a message that is stored in the inbox of its key.
type keptMessage struct {
	*queue.Ruled
	head inboxHead // after the transaction
}

// keep returns a change that adds a message to the inbox of the key with a place.
func (q *openQueue) keep(place string, m *inbox.Message) *keptMessage {
	group := q.inboxGroup(place)
	k := &keptMessage{}
	k.Ruled = &queue.Ruled{Names: []queue.Hash{q.inboxHeadName(place)}, Size: m.Size(), Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		x := decodeInboxHead(place, old[0])
		x.last = x.last.Next(time.Now())
		x.count, x.size = x.count+1, x.size+int64(m.Size())
		k.head, m.Cursor = x, x.last
		return &queue.RuledChange{
			Records: []queue.Record{x.record(q, m.Expires)},
			Owned: []queue.OwnedRecord{{
				Name:   inboxMessageName(group, x.last),
				Record: queue.Record{Data: encodeInboxMessage(place, m), Due: m.Expires, Group: group},
			}},
		}, nil
	}}
	return k
}

func encodeInboxMessage(place string, m *inbox.Message) []byte {
	return encodeRecord(kindInboxMessage, wire.AppendItem(wire.AppendText(nil, inboxPlace, place), inboxMessage, m.Append(nil)))
}

// decodeInboxMessage returns the message in a record, and the place of its key.
func decodeInboxMessage(record []byte) (place string, m *inbox.Message, ok bool) {
	if len(record) == 0 || record[0] != kindInboxMessage {
		return "", nil, false
	}
	for r := wire.NewReader(record[1:]); r.Next(); {
		switch r.Field {
		case inboxPlace:
			place = r.Text()
		case inboxMessage:
			var err error
			if m, err = inbox.Decode(r.Bytes()); err != nil {
				return "", nil, false
			}
		}
	}
	return place, m, m != nil
}

// inboxPage is the number of messages that are read at once.
const inboxPage = 50

// readInbox returns the first messages in the inbox of the key with a place after a
// cursor, also those that have expired. If there are none, no more follow.
func (q *openQueue) readInbox(ctx context.Context, place string, after inbox.Cursor) ([]*inbox.Message, error) {
	group := q.inboxGroup(place)
	for name := inboxMessageName(group, after); ; {
		records, err := q.CallersGroup(ctx, group, name, inboxPage)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		messages := make([]*inbox.Message, 0, len(records))
		for _, r := range records {
			name = r.Name
			if _, m, ok := decodeInboxMessage(r.Data); ok {
				messages = append(messages, m)
			}
		}
		if len(messages) > 0 {
			return messages, nil
		}
	}
}

// inboxHead returns the head of the inbox of the key with a place.
func (q *openQueue) inboxHead(ctx context.Context, place string) (inboxHead, error) {
	b, err := q.CallersRecord(ctx, q.inboxHeadName(place))
	return decodeInboxHead(place, b), err
}

// dueInboxMessage removes a message whose time is over, and those before it.
func (q *openQueue) dueInboxMessage(ctx context.Context, data []byte) error {
	place, m, _ := decodeInboxMessage(data)
	for {
		n, err := q.removeFromInbox(ctx, place, m.Cursor)
		if err != nil || n < inboxPage {
			return err
		}
	}
}

// removeFromInbox removes the oldest messages of an inbox: a page of those with a cursor
// of at most upTo. It returns how many there were.
func (q *openQueue) removeFromInbox(ctx context.Context, place string, upTo inbox.Cursor) (n int, err error) {
	group := q.inboxGroup(place)
	records, err := q.CallersGroup(ctx, group, queue.Hash{}, inboxPage)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	var oldest []*inbox.Message
	size := 0
	for _, r := range records {
		if _, m, ok := decodeInboxMessage(r.Data); ok && m.Cursor <= upTo {
			oldest, size = append(oldest, m), size+m.Size()
		}
	}
	if len(oldest) == 0 {
		return 0, nil
	}
	var head inboxHead
	err = q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.inboxHeadName(place)}, Size: size, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		c := new(queue.RuledChange)
		head = decodeInboxHead(place, old[0])
		for _, m := range oldest {
			if m.Cursor > head.gone { // otherwise another gateway has removed it
				head.gone, head.count, head.size = m.Cursor, head.count-1, head.size-int64(m.Size())
				c.Owned = append(c.Owned, queue.OwnedRecord{Name: inboxMessageName(group, m.Cursor)})
			}
		}
		c.Records = []queue.Record{head.record(q, time.Now())}
		return c, nil
	}})
	if err == nil {
		q.inboxes.note(head)
	}
	return len(oldest), err
}

// dueInboxHead removes the head of an inbox that is empty.
func (q *openQueue) dueInboxHead(ctx context.Context, name queue.Hash, data []byte) error {
	place := decodeInboxHead("", data).place
	messages, err := q.readInbox(ctx, place, 0)
	if err != nil {
		return err
	}
	return q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		head := decodeInboxHead(place, old[0])
		c := &queue.RuledChange{Records: make([]queue.Record, 1)}
		if len(messages) > 0 || head.last != decodeInboxHead(place, data).last {
			c.Records[0] = head.record(q, time.Now())
		}
		return c, nil
	}})
}
