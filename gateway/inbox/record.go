package inbox

import (
	"encoding/binary"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The kinds of records of inboxes: a message, and the [Head] of an inbox. Only the configuration
// gives a key an inbox.
var (
	KindMessage = outbox.SharedKind('m', "messages of inboxes", 4, 10_000, outbox.Lasting)
	KindInbox   = outbox.OwnedKind('I', "inboxes", outbox.Lasting, "there is one of each key with messages")
)

// Head summarizes an inbox. Its record owns the records of the messages.
type Head struct {
	Place string
	Last  Cursor // of the last message that came in
	Gone  Cursor // of the last message that was removed
	Count int    // of the messages that are there
	Size  int64  // of them, as [Message.Size] counts
}

func (h *Head) fields(c *wire.Codec) {
	wire.Text(c, 1, &h.Place)
	wire.Number(c, 2, &h.Last)
	wire.Number(c, 3, &h.Gone)
	wire.Number(c, 4, &h.Count)
	wire.Number(c, 5, &h.Size)
}

// added returns the head with a message that came in at a time.
func (h Head) added(m *Message, now time.Time) Head {
	h.Last = h.Last.next(now)
	h.Count, h.Size = h.Count+1, h.Size+int64(m.Size())
	return h
}

// removed returns the head without its oldest message.
func (h Head) removed(m *Message) Head {
	h.Gone = m.Cursor
	h.Count, h.Size = max(h.Count-1, 0), max(h.Size-int64(m.Size()), 0)
	return h
}

func (h *Head) encode() []byte {
	return wire.Append(KindInbox.Begin(), h, (*Head).fields)
}

// decodeHead returns the head of the inbox of a place. A missing or damaged record is an empty
// head.
func decodeHead(place string, record []byte) Head {
	h := Head{Place: place}
	if outbox.KindOf(record) == KindInbox {
		_ = wire.Decode(record[1:], &h, (*Head).fields) // the readable part counts
	}
	return h
}

// stored is a message with the place of its inbox, as it is stored.
type stored struct {
	place   string
	message *Message
}

func (s *stored) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.place)
	wire.Record(c, 2, s.message, (*Message).fields)
}

func encodeMessage(place string, m *Message) []byte {
	return wire.Append(KindMessage.Begin(), &stored{place, m}, (*stored).fields)
}

// decodeMessage returns the message in a record, and the place of its inbox. It reports
// false for another record and for a damaged one.
func decodeMessage(record []byte) (place string, m *Message, ok bool) {
	if outbox.KindOf(record) != KindMessage {
		return "", nil, false
	}
	s := stored{message: new(Message)}
	err := wire.Decode(record[1:], &s, (*stored).fields)
	return s.place, s.message, err == nil && s.message.Cursor > 0
}

// messageName returns the name of the record of a message. The names of a group sort by cursor.
func messageName(group queue.Hash, c Cursor) (name queue.Hash) {
	copy(name[:], group[:8])
	binary.BigEndian.PutUint64(name[8:], uint64(c))
	return name
}
