package ask

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Questions are the questions of all keys, as they are stored.
type Questions struct {
	outbox.NoArm
	outbox.NoEnded
	outbox.NoRecheck
	outbox.NoForget
	outbox *outbox.Outbox
	alerts *alerting.Engine

	any     atomic.Bool   // a question may be open
	looked  atomic.Int64  // when it was last looked whether one is open, as UnixNano; 0 for never
	usage   *outbox.Usage // limits what a key can have
	waiters waiters
}

// New returns the questions of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox, alerts *alerting.Engine) *Questions {
	q := &Questions{outbox: o, alerts: alerts}
	q.usage = o.NewUsage(Kind, weigh, func(ctx context.Context, place string, f func([]byte)) error {
		for _, group := range []queue.Hash{q.group(place), q.decidedGroup(place)} {
			if err := outbox.EachOfGroup(ctx, o.Queue, group, func(r queue.NamedRecord) bool { f(r.Data); return true }); err != nil {
				return err
			}
		}
		return nil
	})
	return q
}

// weigh returns what a record counts for. A question counts while it is open.
func weigh(record []byte) outbox.Used {
	w := outbox.Weigh(record)
	if x := questions.Decode(record); x != nil && !x.IsOpen() {
		w.Count = 0
	}
	return w
}

const (
	// maxShown is the length in bytes that a text is cut to on the page.
	maxShown = 32 << 10

	// postponed is how long an attempt is postponed if its question cannot be read.
	postponed = 2 * time.Second

	ruleDecided = message.RuleDecided
)

// Kinds returns the kind of questions.
func (q *Questions) Kinds() []*outbox.Kind { return []*outbox.Kind{Kind} }

// Punctual returns a function that reports whether a question may be open.
func (q *Questions) Punctual(*outbox.Configuration) func() bool { return q.any.Load }

// Get returns a question, or [ErrNone]. It returns an overdue question as expired, even if that is
// not stored yet.
func (q *Questions) Get(ctx context.Context, id uuid.UUID) (*Question, error) {
	x, err := questions.Read(ctx, q.outbox, q.name(id))
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, ErrNone
	}
	x.expire(q.outbox.Queue.Now())
	return x, nil
}

// OpenOf returns the open questions of the keys with these places that came to a site, those that end
// soonest first.
func (q *Questions) OpenOf(ctx context.Context, places []string, siteID string) (out []*Question, err error) {
	if !q.any.Load() {
		return nil, nil
	}
	sizes, err := q.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return nil, err
	}
	now := q.outbox.Queue.Now()
	for _, place := range places {
		if sizes[q.group(place)] == 0 {
			continue
		}
		err := outbox.EachOfGroup(ctx, q.outbox.Queue, q.group(place), func(r queue.NamedRecord) bool {
			if x := questions.Decode(r.Data); x != nil && x.Site == siteID && !x.expire(now) && x.IsOpen() {
				out = append(out, x)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b *Question) int {
		return cmp.Or(a.Until.Compare(b.Until), a.Created.Compare(b.Created), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return out, nil
}

// Ask stores the question of d, a message to a key, and sends it. It returns the report and the ID
// of the message. If the report is nil, nothing was sent, and the caller releases d: the error is a
// [*message.Error] that says why, or comes from [outbox.Outbox.Submit].
func (q *Questions) Ask(ctx context.Context, d dispatch.Delivery, a *message.Ask) (*notifier.Report, string, error) {
	if err := a.Check(); err != nil {
		return nil, "", err
	}
	d.Question = a
	if err := q.prepare(&d); err != nil {
		return nil, "", err
	}
	x := newQuestion(&d, q.outbox.Queue.Now())
	u := q.ruled(q.name(x.ID), func(*Question, time.Time) (*Question, error) { return x, nil })
	d.With = q.usage.Ruled(x.Place.String(), true, u)
	q.any.Store(true)
	return q.outbox.Submit(ctx, d, outbox.Options{})
}

// errNoTarget is returned for a question that reaches nobody.
var errNoTarget = message.Errorf(message.Unsendable, "no destination of the key can be asked; add one, or a device")

// prepare prepares d as a question. It leaves out the rules of the key except escalate, and the
// destinations that are silenced.
func (q *Questions) prepare(d *dispatch.Delivery) error {
	if len(d.To.Targets) == 0 {
		return errNoTarget
	}
	if err := q.leaveSilent(d); err != nil {
		return err
	}
	if d.ID == (uuid.UUID{}) {
		d.ID = queue.NewID()
	}
	if d.Rules.IsStep() {
		d.Rules = &rules.Rules{Escalate: d.Rules.Escalate}
		d.Message.Incident.State = notifier.Open // it is an incident of its own, whatever its type
	} else {
		d.Rules = nil
	}
	return nil
}

// leaveSilent removes the silenced destinations. It returns an error if none is left.
func (q *Questions) leaveSilent(d *dispatch.Delivery) error {
	silences := q.alerts.Silences.Concerning(d)
	if len(silences) == 0 {
		return nil
	}
	now, to := q.outbox.Queue.Now(), *d.To
	steps := d.Steps
	to.Targets, d.Steps = nil, nil
	var by *rules.Silence
	for i, t := range d.To.Targets {
		if s := silences.Match(now, d.Message.Incident, d.Message.Title, t.Tags); s != nil {
			by = s
			continue
		}
		to.Targets = append(to.Targets, t)
		if steps != nil {
			d.Steps = append(d.Steps, steps[i])
		}
	}
	if by == nil {
		d.Steps = steps
		return nil
	}
	if len(to.Targets) == 0 {
		reason := ""
		if by.Reason != "" {
			reason = ": " + by.Reason
		}
		return message.Errorf(message.Conflict,
			"nobody was asked, because a silence until %s covers all destinations%s; end it, or ask again then",
			timetext.Format(by.Until), reason)
	}
	to.Warn(fmt.Sprintf("A silence keeps the question from %d of %d destinations", len(d.To.Targets)-len(to.Targets), len(d.To.Targets)))
	d.To = &to
	return nil
}

// newQuestion returns the question of d, asked at now.
func newQuestion(d *dispatch.Delivery, now time.Time) *Question {
	m := d.Message
	plain := func(text string) string {
		if m.Format != markup.Text && m.Format != "" {
			text = markup.Convert(text, m.Format, markup.Text)
		}
		return markup.TruncateBytes(text, maxShown)
	}
	x := &Question{
		Ask: *d.Question, ID: d.ID, Site: d.Site, Place: d.At(), Key: d.Key, Title: plain(m.Title), Body: plain(m.Body), Type: m.Type,
		Created: now, Until: now.Add(d.Question.Timeout), Escalates: d.Rules.IsStep() &&
			slices.ContainsFunc(d.Steps, func(n int) bool { return n != 0 }), Outcome: Outcome{State: Open},
	}
	for _, t := range d.To.Targets {
		x.Targets = append(x.Targets, Target{t.Hash(), t.String(), t.Name()})
	}
	x.newLinkSecret()
	return x
}

// errDecided is returned when a question is not open.
var errDecided = errors.New("the question is decided")

// change changes an open question, and returns the question after that. changed reports whether it
// was open. f may be called several times.
func (q *Questions) change(ctx context.Context, id uuid.UUID, by string, f func(x *Question, now time.Time)) (x *Question,
	changed bool, err error,
) {
	before, err := q.Get(ctx, id)
	if err != nil {
		return nil, false, err
	}
	u := q.usage.Ruled(before.Place.String(), false, q.ruled(q.name(id), func(old *Question, now time.Time) (*Question, error) {
		switch x = old; {
		case x == nil:
			return nil, ErrNone
		case !x.IsOpen():
			return nil, errDecided
		}
		if changed = !x.expire(now); changed {
			f(x, now)
		}
		return x, nil
	}))
	if before.Escalates {
		err = q.alerts.Incidents.EndOwn(ctx, before.Place.String(), id, by, u)
	} else {
		err = q.outbox.Queue.Records.Apply(ctx, u)
	}
	if errors.Is(err, errDecided) {
		return x, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	q.waiters.wake(id)
	q.follow(ctx, x)
	return x, changed, nil
}
