package ruler

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The kinds of records of rulers.
var (
	// A group of alerts. Its record is due at least once a day.
	KindGroup = outbox.CountedKind('a', "groups of alerts", 8, 10_000, outbox.Day,
		"wait until alerts have ended, or have the ruler post fewer labels and annotations")

	// A piece with alerts of a large group. It counts with the record of the group, and is removed
	// with it.
	KindPiece = outbox.OwnedKind('A', "pieces of groups of alerts", outbox.Lasting, "the record of the group counts for them")
)

// groupsName returns the group of the records of all groups of alerts, without their pieces.
func (r *Rulers) groupsName() queue.Hash { return r.outbox.Queue.Hash("alert groups") }

// groupName returns the name of the record of a group of the key with a place.
func groupName(o *outbox.Outbox, place, name string) queue.Hash {
	return o.Queue.Hash("alert group\x00" + place + "\x00" + name)
}

// piecesName returns the group of the pieces of the group whose record has a name.
func (r *Rulers) piecesName(name queue.Hash) queue.Hash {
	return r.outbox.Queue.Hash("alert pieces\x00" + string(name[:]))
}

// pieceName returns the name of a piece of the group whose record has a name.
func (r *Rulers) pieceName(name queue.Hash, i int) queue.Hash {
	return r.outbox.Queue.Hash("alert piece\x00" + string(name[:]) + strconv.Itoa(i))
}

// pieceDue is when pieces are due: never. All pieces have the same time, so that an unchanged piece
// is not written.
var pieceDue = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// groups are the records of groups, without the alerts in their pieces. A missing or damaged record
// is nil: the ruler posts its alerts again.
var groups = outbox.Typed[rules.AlertGroup]{Kind: KindGroup, Fields: (*rules.AlertGroup).Fields}

// join returns the group in a record, with the alerts in the records of its pieces, or nil if there
// is none. It reports whether all pieces are there.
func join(record []byte, pieces [][]byte) (g *rules.AlertGroup, whole bool) {
	g = groups.Decode(record)
	if g == nil {
		return nil, true
	}
	data := make([][]byte, len(pieces))
	for i, b := range pieces {
		if outbox.KindOf(b) == KindPiece {
			data[i] = b[1:]
		}
	}
	return g, g.Join(data)
}

// weigh returns what the record of a group counts for, with its pieces.
func weigh(record []byte) outbox.Used {
	w := outbox.Weigh(record)
	if g := groups.Decode(record); g != nil {
		w.Bytes += g.PieceBytes() + int64(g.Pieces())*outbox.Weigh(nil).Bytes
	}
	return w
}

// pieceNames returns the names of n pieces of the group whose record has a name.
func (r *Rulers) pieceNames(name queue.Hash, n int) []queue.Hash {
	names := make([]queue.Hash, n)
	for i := range names {
		names[i] = r.pieceName(name, i)
	}
	return names
}

// names returns the names of the records that a change of a group with these pieces may change.
func (r *Rulers) names(name queue.Hash, pieces []queue.Hash) []queue.Hash {
	return append([]queue.Hash{name, r.beats.UptimeName()}, pieces...)
}

// get returns the contents of pieces.
func get(tx *queue.Tx, pieces []queue.Hash) [][]byte {
	contents := make([][]byte, len(pieces))
	for i, name := range pieces {
		contents[i] = tx.Get(name)
	}
	return contents
}

// put stores a group, or removes it if it is over. pieces are the names that its pieces can have.
func (r *Rulers) put(tx *queue.Tx, name queue.Hash, pieces []queue.Hash, g *rules.AlertGroup, u *rules.Uptime, now time.Time) error {
	var cut [][]byte
	if g == nil || g.Over(now, u) {
		tx.Delete(name)
	} else {
		due := g.Due(u)
		if due.IsZero() {
			due = outbox.FarAway(now)
		}
		if !g.Gone.IsZero() {
			due = g.Gone.Add(goneTime)
		}
		var head *rules.AlertGroup
		if head, cut = g.Cut(); len(cut) > len(pieces) {
			return &piecesError{len(cut)}
		}
		groups.Put(tx, name, head, due, r.groupsName())
	}
	group := r.piecesName(name)
	for i, piece := range pieces {
		if i < len(cut) {
			tx.Put(piece, queue.Record{Data: outbox.EncodeRecord(KindPiece, cut[i]), Due: pieceDue, Group: group})
		} else {
			tx.Delete(piece)
		}
	}
	return nil
}

// piecesError is returned by a change of a group that has more pieces than the change names.
type piecesError struct{ n int }

func (e *piecesError) Error() string { return "the group of alerts has more pieces now" }

// change changes the group in the record with a name. place is the place of its key. decide gets
// nil if there is no group, and returns nil to remove it.
func (r *Rulers) change(
	ctx context.Context, name queue.Hash, place string, adds bool,
	decide func(g *rules.AlertGroup, u *rules.Uptime, now time.Time) *rules.AlertGroup,
) error {
	record, err := r.outbox.Queue.Records.Get(ctx, name)
	if err != nil {
		return err
	}
	n := 0
	if g := groups.Decode(record); g != nil {
		n = g.Pieces()
	}
	for {
		pieces := r.pieceNames(name, n)
		err := r.outbox.Apply(ctx, r.usage.Ruled(place, adds,
			&queue.Ruled{Names: r.names(name, pieces), Adds: adds, Decide: func(tx *queue.Tx) error {
				now := r.outbox.Queue.Now()
				u := r.beats.SeeUptime(tx, now)
				g, _ := join(tx.Get(name), get(tx, pieces))
				if g != nil && g.Pieces() > n {
					return &piecesError{g.Pieces()}
				}
				return r.put(tx, name, pieces, decide(g, u, now), u, now)
			}}))
		if more, ok := errors.AsType[*piecesError](err); ok {
			n = more.n
			continue
		}
		if err == nil {
			r.beats.Saw()
		}
		return err
	}
}

// stored is a group as it is stored.
type stored struct {
	*rules.AlertGroup // nil for none
	record            []byte
	pieces            [][]byte
}

// load returns the group in a record that was read, with its pieces.
func (r *Rulers) load(ctx context.Context, name queue.Hash, record []byte) (*stored, error) {
	for {
		s := &stored{record: record}
		if head := groups.Decode(record); head != nil && head.Pieces() > 0 {
			s.pieces = make([][]byte, head.Pieces())
			at := map[queue.Hash]int{}
			for i := range s.pieces {
				at[r.pieceName(name, i)] = i
			}
			err := outbox.EachOfGroup(ctx, r.outbox.Queue, r.piecesName(name), func(x queue.NamedRecord) bool {
				if i, ok := at[x.Name]; ok {
					s.pieces[i] = x.Data
				}
				return true
			})
			if err != nil {
				return nil, err
			}
		}
		var whole bool
		if s.AlertGroup, whole = join(record, s.pieces); whole {
			return s, nil
		}
		again, err := r.outbox.Queue.Records.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(again, record) {
			return s, nil // a piece is damaged: the ruler posts its alerts again
		}
		record = again // it has changed meanwhile
	}
}

// is reports whether the stored group is still s. pieces are the names of at least as many pieces
// as s has.
func (s *stored) is(tx *queue.Tx, name queue.Hash, pieces []queue.Hash) bool {
	return bytes.Equal(tx.Get(name), s.record) && slices.EqualFunc(get(tx, pieces[:len(s.pieces)]), s.pieces, bytes.Equal)
}
