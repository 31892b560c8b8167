package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What a destination of a key refuses for good is kept as given up, whichever way the message came
// in. A client that waits reads the failure all the same. Each destination of a key that has given
// something up has a record:
//
//   - It knows the texts that are kept, so that an unchanged repeat replaces the one before.
//   - It counts what the fallback of the key has not been told of, so that the fallback gets
//     one message at once and then at most one an hour.
//
// A client can make destinations, with the values of a template or as URLs of a saved key. So
// records are forgotten beyond the share of the key: first the texts, then the others.

// The bounds of a record.
const (
	maxKept       = 200 // texts; further ones replace nothing
	givenUpSize   = 10 << 10
	givenUpReason = 300 // bytes
	tellEvery     = time.Hour
)

// givenUp is what a destination of a key has given up.
type givenUp struct {
	home            string    // where the key is defined; "" in a record of an early version
	key, site, hash string    // of the last delivery; they find the fallback
	service         string    // of the last delivery
	reason, id      string    // of the last delivery
	last            time.Time // of the last delivery
	told            time.Time // of the last message to the fallback; zero for none
	count           int       // of the deliveries that the fallback was not told of
	kept            []keptText
}

// keptText is a delivery that is kept.
type keptText struct {
	text []byte // see [queued.State]
	job  queue.JobID
}

func (g *givenUp) fields(c *wire.Codec) {
	wire.Text(c, 1, &g.key)
	wire.Text(c, 2, &g.site)
	wire.Text(c, 3, &g.hash)
	wire.Text(c, 4, &g.service)
	wire.Text(c, 5, &g.reason)
	wire.Text(c, 6, &g.id)
	wire.Time(c, 7, &g.last)
	wire.Time(c, 8, &g.told)
	wire.Number(c, 9, &g.count)
	wire.Records(c, 10, &g.kept, (*keptText).fields)
	wire.Text(c, 11, &g.home)
}

func (k *keptText) fields(c *wire.Codec) {
	wire.Bytes(c, 1, &k.text)
	wire.Array(c, 2, k.job.Message[:])
	wire.Number(c, 3, &k.job.Index)
}

// givenUpRecords are the records. A damaged one knows nothing.
var givenUpRecords = Typed[givenUp]{KindGivenUp, (*givenUp).fields}

// givenUpMemory keeps what destinations have given up within the share of each key.
type givenUpMemory struct{ *Memory }

// record returns the record of g.
func (m givenUpMemory) record(g *givenUp) queue.Record {
	var group queue.Hash
	if g.home != "" {
		group = m.members(g.place())
	}
	return givenUpRecords.Record(g, m.dueTime(g), group)
}

// dueTime returns when the fallback is to be told. If there is nothing to tell, it returns when the
// record is removed.
func (m givenUpMemory) dueTime(g *givenUp) time.Time {
	if g.count > 0 {
		return g.told.Add(tellEvery)
	}
	return g.last.Add(max(m.outbox.Queue.Keep(), tellEvery))
}

// place returns the place of the key.
func (g *givenUp) place() string { return g.home + "\x00" + g.key }

// RememberGivenUp begins to keep what destinations have given up within the share of each key.
func (q *Outbox) RememberGivenUp() {
	rank := func(record []byte) time.Time {
		g := givenUpRecords.DecodeOrNew(record)
		if len(g.kept) == 0 || g.count > 0 { // what the fallback was told, and is to be told
			return g.last.Add(q.Queue.Keep())
		}
		return g.last
	}
	group := func(place string) queue.Hash { return q.Queue.Hash("given up of\x00" + place) } // of a key
	q.givenUp.Memory = q.NewMemory(KindGivenUp, group, rank, func(record []byte) queue.Record {
		g := givenUpRecords.DecodeOrNew(record)
		if len(g.kept) == 0 {
			return queue.Record{}
		}
		g.kept = nil
		return q.givenUp.record(g)
	})
}

// keepsRefused reports whether a delivery of the message is kept if its destination refuses it for
// good. Deliveries to destinations of keys are, except tests.
func keepsRefused(d *dispatch.Delivery) bool {
	return d.Key != "" && !d.To.Transient && d.Source != site.SourceTest
}

// textSum identifies the text of a message to a key. A repeat that is unchanged has the
// same.
func textSum(d *dispatch.Delivery) []byte {
	if !keepsRefused(d) {
		return nil
	}
	m, at := d.Message, d.At()
	b := make([]byte, 0, 64+len(at.Home)+len(at.Key)+len(m.Title)+len(m.Body))
	for _, text := range [...]string{at.Home, at.Key, string(m.Type), m.Title, m.Body} {
		b = append(strconv.AppendInt(b, int64(len(text)), 10), ':')
		b = append(b, text...)
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}

// refused is what a destination has refused for good before the message was stored.
type refused struct {
	targets []int // their indexes
	only    bool  // nothing else waits for the queue
}

// setRefused sets the job of the i-th target, which has refused the message for good.
// The queue gives it up as soon as the message is stored (see settleRefused).
func (x *Draft) setRefused(j *queue.Job, i int) {
	x.prepareJob(j, i)
	j.State = x.States[i].With(x.targets[i].result.Progress)
	j.Status = queue.Sending
	x.refused.targets = append(x.refused.targets, i)
}

// settleTime is how long an answer waits until the given up deliveries are stored.
const settleTime = 3 * time.Second

// settleRefused gives up the deliveries that were refused for good before the message was
// stored.
func (x *Draft) settleRefused(q *Outbox) {
	if len(x.refused.targets) == 0 {
		return
	}
	done := make(chan struct{})
	go func() { // the queue ends it when it is closed
		defer close(done)
		for _, i := range x.refused.targets {
			j := *x.job(i)
			if j.Status != queue.Sending {
				continue // an older message of the incident waits; the queue tries this one after it
			}
			o := x.outcome(i)
			o.NotSent = true // the attempt was made before, and is counted
			q.Queue.Settle(&j, o)
		}
	}()
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// recordName returns the name of the record of a destination of a key. home is where the key is
// defined.
func (m givenUpMemory) recordName(home, key, destination string) queue.Hash {
	return m.outbox.Queue.Hash(strings.Join([]string{"given up", home, key, destination}, "\x00"))
}

// Ended returns what changes when a job of a key is given up: it replaces one with the
// same text, and is told to the fallback or counted.
func (q *Outbox) Ended(conf *Configuration, j *queue.Job) *queue.Ruled {
	if j.Status != queue.Dead {
		return nil
	}
	d := NewDeadDelivery(j)
	if d.State.Key == "" {
		return nil
	}
	_, fallback, home := conf.fallbackOf(&d.State)
	tells := fallback != "" && !d.Result.Optional
	if !tells && len(d.State.Text) == 0 {
		return nil
	}
	name := q.givenUp.recordName(home, d.State.Key, j.Destination)
	place := (&givenUp{home: home, key: d.State.Key}).place()
	return q.givenUp.Ruled(place, true, &queue.Ruled{Names: []queue.Hash{name}, Size: 2 * givenUpSize, Decide: func(tx *queue.Tx) error {
		if j.Status != queue.Dead { // a newer state of its incident tells it
			return nil
		}
		now := q.Queue.Now()
		g := givenUpRecords.GetOrNew(tx, name)
		replaced := g.keep(d.State.Text, j.JobID)
		statuses, err := tx.Status(replaced...)
		for i, status := range statuses {
			if status == queue.Dead {
				tx.Change(replaced[i], func(x *queue.Job) { x.Status, x.By, x.Updated = queue.Failed, j.JobID, now })
			}
		}
		g.home, g.key, g.site, g.hash, g.service, g.last = home, d.State.Key, d.State.Site, d.State.Hash, d.Result.Service, now
		switch {
		case !tells:
		case g.count == 0 && !now.Before(g.told.Add(tellEvery)):
			g.told = now
		default:
			g.count++
			g.reason, g.id = markup.TruncateBytes(d.Reason, givenUpReason), d.ID
			tx.Quiet()
		}
		tx.Put(name, q.givenUp.record(g))
		return err
	}})
}

// keep notes that a job with a text is kept. It returns the jobs of other messages that the job
// replaces.
func (g *givenUp) keep(text []byte, job queue.JobID) (replaced []queue.JobID) {
	if len(text) == 0 {
		return nil
	}
	g.kept = slices.DeleteFunc(g.kept, func(k keptText) bool {
		if !bytes.Equal(k.text, text) || k.job.Message == job.Message && k.job != job {
			return false
		}
		if k.job != job { // it may have been retried
			replaced = append(replaced, k.job)
		}
		return true
	})
	g.kept = append(g.kept, keptText{text, job})
	g.kept = slices.Delete(g.kept, 0, max(len(g.kept)-maxKept, 0))
	return replaced
}

// Follow replaces the jobs of e that another message with the same text has replaced, if somebody
// has retried that message. It replaces a planned message by the message that it was sent as.
func (q *Outbox) Follow(ctx context.Context, e *queue.Entry) error {
	if err := q.followSent(ctx, e); err != nil {
		return err
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		if j.Status != queue.Failed || j.By == (queue.JobID{}) {
			continue
		}
		kept, err := q.Queue.Replacement(ctx, j)
		if err != nil {
			return err
		}
		if kept.Status == queue.Delivered || kept.Status.Waits() {
			j.Status, j.Result, j.Due, j.Rule = kept.Status, kept.Result, kept.Due, kept.Rule
		}
	}
	return nil
}

// errGivenUpChanged is returned when a record has changed since it was read.
var errGivenUpChanged = fmt.Errorf("what was given up: %w", queue.ErrChanged)

// Ahead reports whether the fallback was told of what a destination has given up when the clock was
// ahead.
func (q *Outbox) Ahead(record []byte, now time.Time) bool {
	g := givenUpRecords.DecodeOrNew(record)
	return g.count > 0 && queue.WrittenAhead(g.told, now)
}

// Kinds returns the kinds of what the outbox remembers of messages.
func (q *Outbox) Kinds() []*Kind {
	return []*Kind{KindGivenUp, KindOpenAlert, KindCancelled, KindUsage}
}

// Due does what is due in a record.
func (q *Outbox) Due(ctx context.Context, conf *Configuration, name queue.Hash, data []byte, crowded bool) error {
	switch KindOf(data) {
	case KindGivenUp:
		return q.givenUp.due(ctx, conf, name, data, crowded)
	case KindCancelled:
		return q.cancelling.due(ctx, q, name, data)
	case KindOpenAlert:
		return q.dueOpenAlert(ctx, name, data)
	case KindUsage:
		return q.usages.due(ctx, q, name, data)
	}
	return nil
}

// due tells the fallback what was given up since the last message to it, or removes a record.
func (m givenUpMemory) due(ctx context.Context, conf *Configuration, name queue.Hash, data []byte, crowded bool) error {
	q := m.outbox
	g := givenUpRecords.DecodeOrNew(data)
	if crowded && g.count > 0 {
		return nil
	}
	var settings *site.Site
	var fallback string
	if g.count > 0 {
		settings, fallback, _ = conf.fallbackOf(&queued.State{Key: g.key, Site: g.site, Hash: g.hash})
	}
	u := &queue.Ruled{Names: []queue.Hash{name}, Size: 2 * givenUpSize, Decide: func(tx *queue.Tx) error {
		if !bytes.Equal(tx.Get(name), data) {
			return errGivenUpChanged
		}
		now := q.Queue.Now()
		next := *g
		switch {
		case g.count > 0:
			next.count, next.reason, next.id = 0, "", ""
			if fallback != "" {
				next.told = now
			}
		case crowded || !now.Before(m.dueTime(g)):
			tx.Delete(name)
			return nil
		}
		tx.Put(name, m.record(&next))
		return nil
	}}
	if g.home != "" {
		u = m.Ruled(g.place(), true, u)
	}
	var err error
	if fallback == "" {
		err = q.Queue.Records.Apply(ctx, u)
	} else {
		e := q.fallbackEntry(settings, fallback, g.site, g.message())
		e.Unlimited, e.Rules = true, queue.JoinRuled(e.Rules, u)
		err = q.Queue.Accept(ctx, e)
	}
	if errors.Is(err, errGivenUpChanged) {
		return nil // it is due again
	}
	return err
}

// message returns the message to the fallback about what it was not told of.
func (g *givenUp) message() *notifier.Message {
	title, subject := fmt.Sprintf("%d more messages for %s not delivered", g.count, g.key),
		fmt.Sprintf("%d more messages for the key %s were not delivered to %s", g.count, g.key, g.service)
	if g.count == 1 {
		title, subject = "One more message for "+g.key+" not delivered", "One more message for the key "+g.key+" was not delivered to "+g.service
	}
	text := []string{
		subject + " since the last message about it, and they are not tried again.",
		"Last reason: " + g.reason,
		"Last ID: " + g.id,
	}
	if g.count == 1 {
		text[0] = subject + " since the last message about it, and is not tried again."
		text[1], text[2] = "Reason: "+g.reason, "ID: "+g.id
	}
	// The reason may quote what a server has answered.
	return &notifier.Message{Title: title, Body: strings.Join(text, "\n"), Type: notifier.Failure, Foreign: true}
}

// fallbackEntry returns a message to the fallback of a key of a site.
func (q *Outbox) fallbackEntry(settings *site.Site, fallback, siteID string, m *notifier.Message) *queue.Entry {
	to := settings.Configured(fallback)
	d := dispatch.NewDelivery(settings, site.SourceFallback, siteID, m, &message.Selection{Targets: to.DefaultTargets}).ToKey(to)
	d.Rules = nil // it is sent at once
	e, _ := q.Entry(&d)
	return e
}

// fallbackOf returns the name of the fallback of the key of a delivery, or "", the settings
// that have both keys, and where the key is defined. The hash in the state distinguishes
// keys of the same name in several handlers.
func (a *Configuration) fallbackOf(state *queued.State) (settings *site.Site, fallback, home string) {
	if t, err := a.FindQueued(context.Background(), state); err == nil {
		return t.Settings, t.fallback, t.Key.Home(state.Site)
	}
	for _, s := range a.Candidates(state.Site) {
		if k := s.Keys[state.Key]; k != nil && k.Fallback != "" {
			return s, k.Fallback, k.Home(state.Site)
		}
	}
	return nil, "", "site " + state.Site
}
