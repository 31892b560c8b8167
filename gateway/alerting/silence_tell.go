package alerting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// errSilenceTold is returned when another gateway has told the beginning or the end of a
// silence.
var errSilenceTold = fmt.Errorf("the silence: %w", queue.ErrChanged)

// ended is a silence that somebody ends before its time. The zero value is none.
type ended struct {
	id  uuid.UUID
	who string
}

// tell sends the messages about silences of a key that have begun or ended. Each is stored
// with the note that it was told.
func (s *Silences) tell(ctx context.Context, conf *outbox.Configuration, at silencedKey, by ended) error {
	for {
		b, err := s.outbox.Queue.Records.Get(ctx, s.records.silencesName(at.String()))
		if err != nil {
			return err
		}
		now, of := s.outbox.Queue.Now(), silencesRecords.DecodeOrNew(b)
		x, over := of.Untold(now)
		if x == nil {
			return nil
		}
		err = s.tellOne(ctx, conf, at, *x, over, of.All)
		if errors.Is(err, errSilenceTold) {
			continue
		}
		if err != nil {
			return err
		}
		if !over && !x.Begins().After(x.Made) {
			continue // it began when it was made
		}
		told, change := *x, silenceBegun
		if over {
			if change, told.Who = silenceEnded, ""; told.ID == by.id {
				told.Who = by.who
			}
		}
		s.changed(conf, change, conf.NameOf(ctx, at.Place), told)
	}
}

// tellOne stores the message about the beginning of a silence, or about its end, and notes
// that it was told. all are the silences of its key.
func (s *Silences) tellOne(ctx context.Context, conf *outbox.Configuration, at silencedKey, x rules.Silence, over bool,
	all rules.Silences,
) error {
	c := s.newChange(at, func(now time.Time, of *rules.KeySilences) error {
		if !of.Told(now, x.ID, over) {
			return errSilenceTold
		}
		return nil
	})
	d, err := s.message(ctx, conf, at, &x, over, all)
	if err != nil {
		return err
	}
	if d == nil {
		err = s.outbox.Queue.Records.Apply(ctx, c.ruled(false))
	} else {
		d.With = c.ruled(false)
		e, stored := s.outbox.Entry(d)
		e.Unlimited = true
		if err = s.outbox.Queue.Accept(ctx, e); err == nil {
			stored()
		}
	}
	if err == nil {
		c.done(ctx, conf)
	}
	return err
}

// message returns the message about the beginning of a silence, or about its end, or nil if
// nobody is told: no destination is left, or other silences keep it from all of them.
func (s *Silences) message(ctx context.Context, conf *outbox.Configuration, at silencedKey, x *rules.Silence, over bool,
	all rules.Silences,
) (*dispatch.Delivery, error) {
	k, settings, err := at.in(ctx, conf)
	if err != nil || k == nil {
		return nil, err
	}
	k = settings.Devices.With(k)
	m := &notifier.Message{Type: notifier.Info, Format: markup.Text, Time: time.Now(), Foreign: true}
	if over {
		open, err := s.openAfter(ctx, at, x)
		if err != nil {
			return nil, err
		}
		m.Title, m.Body = "A silence has ended", "It began on "+FormatDay(x.Begins())+".\n"+open // not a repetition of the last one
	} else {
		m.Title, m.Body = "A silence has begun", beginText(x)
	}
	if x.Reason != "" {
		m.Title += ": " + x.Reason
	}
	now := s.outbox.Queue.Now()
	others := slices.DeleteFunc(slices.Clone(all.WithWindows(now, k.SilenceWindows())), func(o rules.Silence) bool { return o.ID == x.ID })
	targets := slices.Clone(k.DefaultTargets)
	if x.Tag != "" && !strings.EqualFold(x.Tag, rules.AllTags) {
		targets = slices.DeleteFunc(slices.Clone(k.Targets), func(t notifier.Target) bool { return !x.Concerns(t.Tags) })
	}
	targets = slices.DeleteFunc(targets, func(t notifier.Target) bool {
		return others.Match(now, m.Incident, m.Title, t.Tags) != nil
	})
	if len(targets) == 0 {
		return nil, nil
	}
	d := dispatch.NewDelivery(settings, site.SourceSilence, at.site, m, &message.Selection{Targets: targets}).ToKey(k)
	return &d, nil
}

// beginText returns the text of the message about the beginning of a silence.
func beginText(x *rules.Silence) string {
	lines := []string{"It lasts until " + FormatDay(x.Until) + ". What opens or gets worse meanwhile is told then, if it is still open."}
	for _, about := range [][2]string{
		{"Titles that begin with: ", x.Title},
		{"Incident: ", x.Incident},
		{"Tag: ", x.Tag},
		{"Made by: ", x.Who},
	} {
		if about[1] != "" {
			lines = append(lines, about[0]+about[1])
		}
	}
	return strings.Join(lines, "\n")
}

// maxStillOpen is the maximum number of problems that the message about the end of a silence
// names.
const maxStillOpen = 10

// openAfter returns the text of the message about the end of a silence: what the silence has held
// and is still open.
func (s *Silences) openAfter(ctx context.Context, at silencedKey, x *rules.Silence) (string, error) {
	open, more, err := s.held(ctx, at, x)
	if err != nil {
		return "", err
	}
	if err := s.eachIn(ctx, s.records.incidentGroup(at.String(), notifier.Open), func(r queue.NamedRecord) error {
		if i := incidentRecords.Decode(r.Data); i != nil && i.Escalation.Silenced && x.MatchesIncident(i) && !slices.Contains(open, i.Title) {
			open = append(open, i.Title)
		}
		return nil
	}); err != nil {
		return "", err
	}
	if n := len(open) - maxStillOpen; n > 0 {
		open, more = open[:maxStillOpen], more+n
	}
	if len(open)+more == 0 {
		return "Nothing is open of what it has kept silent.", nil
	}
	if more > 0 {
		open = append(open, fmt.Sprintf("and %d more", more))
	}
	return "Still open:\n" + strings.Join(open, "\n"), nil
}

// held returns the titles of the problems that a silence holds, and the number of problems for
// which there was no room.
func (s *Silences) held(ctx context.Context, at silencedKey, x *rules.Silence) (titles []string, more int, err error) {
	seen := map[uuid.UUID]bool{}
	err = s.eachIn(ctx, s.records.silencedLanes(at.String()), func(r queue.NamedRecord) error {
		lane := laneRecords.DecodeOrNew(r.Data)
		for _, o := range lane.Over {
			if o.Silence == x.ID {
				more = max(more, o.Counts.Total())
			}
		}
		for _, i := range lane.Items {
			if id := i.Job.Message; i.Silence == x.ID && !seen[id] {
				seen[id] = true
				text, err := s.textOf(ctx, id)
				if err != nil {
					return err
				}
				if text != nil {
					titles = append(titles, incidentTitle(&notifier.Message{Title: text.Title, Format: text.Format, Incident: text.Incident}))
				}
			}
		}
		return nil
	})
	return titles, more, err
}

// eachIn calls f with each record of a group, until it returns an error.
func (s *Silences) eachIn(ctx context.Context, group queue.Hash, f func(queue.NamedRecord) error) error {
	for after, more := (queue.Hash{}), true; more; {
		records, err := s.outbox.Queue.Records.Group(ctx, group, after, outbox.PageSize)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			if err := f(r); err != nil {
				return err
			}
		}
		more = len(records) == outbox.PageSize
	}
	return nil
}

// textOf returns the text of a message that waits, or nil if it is gone or damaged.
func (s *Silences) textOf(ctx context.Context, id uuid.UUID) (*queued.Text, error) {
	m, release, err := s.outbox.Queue.Load(ctx, id)
	if _, damaged := errors.AsType[*queue.DamagedError](err); damaged || errors.Is(err, queue.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var text queued.Text
	if text.Decode(m.Body) != nil {
		return nil, nil
	}
	return &text, nil
}
