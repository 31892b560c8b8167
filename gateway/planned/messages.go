package planned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Kind is the kind of the records of planned messages. A record counts with the text and the files
// of the message. It is due in at most a month.
var Kind = outbox.CountedKind('P', "planned messages", 4, 1000, 31*outbox.Day, "wait until one is sent, or cancel one with DELETE")

// Messages are the planned messages of all keys.
type Messages struct {
	outbox.NoEnded
	outbox.NoForget
	outbox *outbox.Outbox
	some   outbox.Presence
	usage  *outbox.Usage
}

// New returns the planned messages of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox) *Messages {
	p := &Messages{outbox: o}
	p.usage = o.NewUsage(Kind, weigh, func(ctx context.Context, place string, f func([]byte)) error {
		return outbox.EachOfGroup(ctx, o.Queue, p.group(), func(r queue.NamedRecord) bool {
			if x := records.Decode(r.Data); x != nil && x.Place.String() == place {
				f(r.Data)
			}
			return true
		})
	})
	return p
}

// weigh returns what a record counts for, with its message.
func weigh(record []byte) outbox.Used {
	w := outbox.Weigh(record)
	if x := records.Decode(record); x != nil {
		w.Bytes += x.Size
	}
	return w
}

// Message is a planned message without its content.
type Message struct {
	ID       uuid.UUID
	Site     string // the ID of the site that it came to
	Place    site.Place
	Key      string // the name of the key when it was planned
	Tags     string // the tag expression; "" for none
	At       time.Time
	Sequence string // the name by which a program cancels it; "" for none
	Size     int64  // of the message with its text and files, in bytes; 0 if an earlier version has stored it

	Delay time.Duration // from when it was planned until At; 0 if its client has named the time
}

// ahead reports whether the message was planned when the clock was ahead. It is then due after its
// delay from now, not at its time.
func (x *Message) ahead(now time.Time) bool {
	return x.Delay > 0 && queue.WrittenAhead(x.At.Add(-x.Delay), now)
}

func (x *Message) fields(c *wire.Codec) {
	wire.Array(c, 1, x.ID[:])
	wire.Text(c, 2, &x.Site)
	wire.Text(c, 3, &x.Place.Home)
	wire.Text(c, 4, &x.Place.Key)
	wire.Text(c, 5, &x.Key)
	wire.Text(c, 6, &x.Tags)
	wire.Time(c, 7, &x.At)
	wire.Text(c, 8, &x.Sequence)
	wire.Number(c, 9, &x.Size)
	wire.Number(c, 10, &x.Delay)
}

// records are the records of planned messages.
var records = outbox.Typed[Message]{Kind: Kind, Fields: (*Message).fields}

// Kinds returns the kind of planned messages.
func (p *Messages) Kinds() []*outbox.Kind { return []*outbox.Kind{Kind} }

// Turn returns the turn of a planned message. The messages of a key are sent one after the other,
// because they can be about one incident.
func (p *Messages) Turn(name queue.Hash, record []byte) string {
	if x := records.Decode(record); x != nil {
		return x.Place.String()
	}
	return outbox.Spread(name, "")
}

// put stores x in its record, which is due at a time.
func (p *Messages) put(tx *queue.Tx, x *Message, due time.Time) {
	records.Put(tx, p.name(x.ID), x, due, p.group())
}

// ruled returns a change of the record of x. If adds is true, the change fails if it exceeds the
// limits of the key.
func (p *Messages) ruled(x *Message, adds bool, decide func(*queue.Tx) error) *queue.Ruled {
	return p.usage.Ruled(x.Place.String(), adds, &queue.Ruled{Names: []queue.Hash{p.name(x.ID)}, Decide: decide})
}

// apply changes the record of x.
func (p *Messages) apply(ctx context.Context, x *Message, decide func(*queue.Tx) error) error {
	return p.outbox.Apply(ctx, p.ruled(x, false, decide))
}

func (p *Messages) name(id uuid.UUID) queue.Hash {
	return p.outbox.Queue.Hash("planned message\x00" + id.String())
}

// group returns the group of all records.
func (p *Messages) group() queue.Hash { return p.outbox.Queue.Hash("planned messages") }

// newMessage returns the record of a planned message m with the text t.
func newMessage(m *queue.Message, t *queued.Text) *Message {
	l := &t.Later
	return &Message{
		ID: m.ID, Site: t.Site, Place: site.Place{Home: l.Home, Key: l.First}, Key: t.Key, Tags: l.Tags,
		At: l.At, Delay: l.Delay, Sequence: l.Sequence, Size: (&queue.Entry{Message: m}).Size(),
	}
}

// Later returns the stored time and recipients of a message that is due at at. format is the name
// of the source whose format the message has, or "".
func Later(at time.Time, w *message.Wish, format string) *queued.Later {
	l := &queued.Later{At: at, Tags: w.Tags.String(), Preferred: w.Preferred, Format: format}
	for _, name := range slices.Sorted(maps.Keys(w.Values)) {
		l.Values = append(l.Values, name, w.Values[name])
	}
	return l
}

// Accept stores d, a message to a key that is sent later. It returns the report and the ID. If the
// report is nil, nothing is stored, and the error is a [*message.Error] that says why, or comes
// from [queue.Queue.Accept].
func (p *Messages) Accept(ctx context.Context, d *dispatch.Delivery) (*notifier.Report, string, error) {
	at := d.At()
	d.Later.Home, d.Later.First = at.Home, at.Key
	e, r := p.outbox.Later(d)
	x := newMessage(e.Message, &queued.Text{Site: d.Site, Key: d.Key, Later: *d.Later})
	e.Untrusted = d.To.Limits != nil
	e.Rules = p.ruled(x, true, func(tx *queue.Tx) error {
		j := &e.Jobs[0]
		j.Status, j.Rule, j.Due = queue.Held, string(notifier.RulePlanned), x.At
		p.put(tx, x, x.At)
		return nil
	})
	err := p.some.Adding(func() error { return p.outbox.Accept(context.WithoutCancel(ctx), e) })
	if err != nil {
		return nil, "", err
	}
	report := &notifier.Report{Results: []notifier.Result{r}, Records: []notifier.Record{message.QueuedRecord(r)}}
	return d.To.Report(report), x.ID.String(), nil
}

// each calls f with each planned message until it returns false.
func (p *Messages) each(ctx context.Context, f func(*Message) bool) error {
	return outbox.EachOfGroup(ctx, p.outbox.Queue, p.group(), func(r queue.NamedRecord) bool {
		x := records.Decode(r.Data)
		return x == nil || f(x)
	})
}

// List returns the planned messages that match, the one that is due first in front.
func (p *Messages) List(ctx context.Context, match func(*Message) bool) (out []Message, err error) {
	err = p.each(ctx, func(x *Message) bool {
		if match(x) {
			out = append(out, *x)
		}
		return true
	})
	if err != nil {
		return nil, outbox.Unread(err)
	}
	slices.SortFunc(out, func(a, b Message) int { return a.At.Compare(b.At) })
	return out, nil
}

// Title returns the title of a planned message, or "" if it has none.
func (p *Messages) Title(ctx context.Context, id uuid.UUID) (string, error) {
	m, release, err := p.outbox.Queue.Load(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", outbox.Unread(err)
	}
	defer release()
	var t queued.Text
	if err := t.Decode(m.Body); err != nil {
		return "", fmt.Errorf("reading a planned message: %w", err)
	}
	return t.Title, nil
}

// CancelOf cancels the planned messages of a key for which chosen returns true.
func (p *Messages) CancelOf(ctx context.Context, at site.Place, chosen func(*Message) bool) error {
	all, err := p.List(ctx, func(x *Message) bool { return x.Place == at && chosen(x) })
	for i := range all {
		if _, cancelErr := p.outbox.Messages().Cancel(ctx, all[i].ID); !errors.Is(cancelErr, outbox.ErrNoMessage) {
			err = errors.Join(err, cancelErr)
		}
	}
	return err
}

// Cancelled removes the record of a message that was cancelled. See [outbox.Policy].
func (p *Messages) Cancelled(ctx context.Context, id uuid.UUID) {
	if err := p.forget(ctx, id); err != nil {
		p.outbox.Log.Debug("the record of a planned message that is over cannot be removed now, and is removed later", zap.Stringer("id", id),
			zap.Error(err))
	}
}

// forget removes the record of a message, unless the message still waits.
func (p *Messages) forget(ctx context.Context, id uuid.UUID) error {
	x, err := p.read(ctx, id)
	if x == nil {
		return err
	}
	return p.apply(ctx, x, func(tx *queue.Tx) error {
		status, err := tx.StatusOf(queue.JobID{Message: id})
		if !status.Waits() {
			tx.Delete(p.name(id))
		}
		return err
	})
}

// read returns a planned message, or nil if it has no record.
func (p *Messages) read(ctx context.Context, id uuid.UUID) (*Message, error) {
	return records.Read(ctx, p.outbox, p.name(id))
}

// Ahead reports whether a record has a message that was planned when the clock was ahead.
func (p *Messages) Ahead(record []byte, now time.Time) bool {
	x := records.Decode(record)
	return x != nil && x.ahead(now)
}

// moveBack makes a message that was planned when the clock was ahead due after its delay from now.
func (p *Messages) moveBack(ctx context.Context, x *Message) error {
	job := queue.JobID{Message: x.ID}
	return p.apply(ctx, x, func(tx *queue.Tx) error {
		now, x := p.outbox.Queue.Now(), records.Get(tx, p.name(x.ID))
		if x == nil || !x.ahead(now) {
			return errChanged
		}
		x.At = now.Add(x.Delay)
		p.put(tx, x, x.At)
		status, err := tx.StatusOf(job)
		if status == queue.Held {
			tx.Change(job, func(j *queue.Job) { j.Due, j.Updated = x.At, now })
		}
		return err
	})
}

// Refresh looks for planned messages of other gateways. The queue calls it each second.
func (p *Messages) Refresh(ctx context.Context, _ *outbox.Configuration) {
	p.some.Look(ctx, p.outbox, p.group)
}

// Arm looks for planned messages when the queue is opened.
func (p *Messages) Arm(ctx context.Context, _ *outbox.Configuration) error {
	return p.some.Begin(ctx, p.outbox.Queue, p.group())
}

// Punctual returns a function that reports whether there may be a planned message.
func (p *Messages) Punctual(*outbox.Configuration) func() bool { return p.some.May }
