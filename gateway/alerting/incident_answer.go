package alerting

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Acknowledge notes that somebody takes care of an incident, whose steps end. It returns the
// incident as it is then; changed is false if it was acknowledged before, or is over. The error is
// a [*message.Error]: [ErrNoIncident] if the incident is gone or was opened anew.
func (i *Incidents) Acknowledge(ctx context.Context, at *StoredIncident, by message.Who) (x *rules.Incident, changed bool, err error) {
	return i.answer(ctx, at, event.IncidentAcknowledged, by, i.acknowledge)
}

// Resolve notes on behalf of a person that an incident is over, and tells who was told of it. It
// returns what Acknowledge does.
func (i *Incidents) Resolve(ctx context.Context, at *StoredIncident, by message.Who) (x *rules.Incident, changed bool, err error) {
	x, changed, err = i.answer(ctx, at, event.IncidentResolved, by, i.resolve)
	if changed {
		i.silences.resolved(ctx, x)
	}
	return x, changed, err
}

// answerFunc is what a person does with an incident. It reports whether that has changed it.
type answerFunc func(ctx context.Context, conf *outbox.Configuration, at *StoredIncident, by string) (x *rules.Incident, changed bool,
	err error)

// answer does something with an incident, also if who asks for it goes away, and logs it.
func (i *Incidents) answer(ctx context.Context, at *StoredIncident, what string, who message.Who, do answerFunc) (*rules.Incident,
	bool, error,
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShareTime)
	defer cancel()
	conf, by := i.outbox.Current(), who.String()
	x, changed, err := do(ctx, conf, at, by)
	if err != nil {
		return nil, false, outbox.QueueError(err)
	}
	if changed {
		key := conf.NameOfIncident(ctx, x)
		i.outbox.Log.Info("incident "+what, zap.String("key", key), zap.String("incident", x.Name), zap.String("user", by))
	}
	return x, changed, nil
}

func (i *Incidents) acknowledge(ctx context.Context, conf *outbox.Configuration, at *StoredIncident, by string) (x *rules.Incident,
	done bool, err error,
) {
	k, _, err := conf.KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return nil, false, err
	}
	ack := time.Duration(0)
	if k != nil && k.Rules.IsStep() {
		ack = k.Rules.Escalate.Ack
	}
	x, err = i.changeOpening(ctx, at, func(c *incidentChange) {
		var cancelled []rules.StepJob
		if cancelled, done = c.incident.Acknowledge(c.now, by, ack); done {
			c.drop(slices.Concat(cancelled, c.silenced), notifier.RuleAcknowledged)
		}
	})
	if err == nil && done {
		i.outbox.Dispatcher.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeAcknowledged, 1)
		i.tell(conf, event.IncidentAcknowledged, x, by)
	}
	return x, done, err
}

func (i *Incidents) resolve(ctx context.Context, conf *outbox.Configuration, at *StoredIncident, by string) (x *rules.Incident,
	done bool, err error,
) {
	k, settings, err := conf.KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return nil, false, err
	}
	if k != nil && !at.Incident.Own && at.Incident.IsOpen() {
		know, err := i.whoKnows(ctx, at.Incident, k)
		if err != nil {
			return nil, false, err
		}
		if to := slices.Concat(at.Incident.Escalation.Targets, know); len(to) > 0 {
			return i.sendResolution(ctx, at, &notice{key: k, settings: settings, to: to, by: by})
		}
	}
	x, err = i.changeOpening(ctx, at, func(c *incidentChange) {
		if done = c.incident.IsOpen(); done {
			c.drop(slices.Concat(c.incident.Close(c.now, by), c.silenced), notifier.RuleAcknowledged)
		}
	})
	if err == nil && done {
		i.tell(conf, event.IncidentResolved, x, by)
	}
	return x, done, err
}

// sendResolution resolves an incident by a message to those who know it.
func (i *Incidents) sendResolution(ctx context.Context, at *StoredIncident, n *notice) (x *rules.Incident, done bool, err error) {
	n.message = &notifier.Message{
		Title: "Resolved: " + at.Incident.Title, Body: Person(n.by) + " says that this is over.", Type: notifier.Success,
	}
	accepted := i.accept(ctx, at.Incident, n)
	if accepted != nil && !errors.Is(accepted, errIncidentChanged) {
		return nil, false, accepted
	}
	now, err := i.ByID(ctx, at.Incident.ID)
	if err != nil {
		return nil, false, err
	}
	return now.Incident, accepted == nil, nil
}

// notice is a message of the gateway about an incident.
type notice struct {
	message  *notifier.Message
	key      *site.Key
	settings *site.Site
	to       []rules.StepTarget // of the destinations of the key; without one of them, its default
	by       string             // who has made it; "" for nobody
}

// accept stores a message of the gateway about an incident, which the queue sends. The
// error is errIncidentChanged if the incident does not need the message any more.
func (i *Incidents) accept(ctx context.Context, x *rules.Incident, n *notice) error {
	m := n.message
	m.Format, m.Time = markup.Text, time.Now()
	m.Foreign = true // the title comes from another message, and a stranger may have written it
	m.Incident = notifier.Incident{Name: x.Name, ID: x.Derived}
	targets := slices.DeleteFunc(slices.Clone(n.key.Targets), func(t notifier.Target) bool {
		return !slices.ContainsFunc(n.to, func(o rules.StepTarget) bool { return o.Hash == t.Hash() })
	})
	if len(targets) == 0 {
		targets = slices.Clone(n.key.DefaultTargets)
	}
	d := dispatch.NewDelivery(n.settings, site.SourceEscalation, x.Site, m, &message.Selection{Targets: targets}).ToKey(n.key)
	d.Format, d.By = x.Source, n.by
	e, stored := i.outbox.Entry(&d)
	e.Unlimited = true
	if err := i.outbox.Queue.Accept(ctx, e); err != nil {
		return err
	}
	stored()
	return nil
}

// whoKnows returns the destinations of a key that were told of an incident, or will be.
func (i *Incidents) whoKnows(ctx context.Context, x *rules.Incident, k *site.Key) (to []rules.StepTarget, err error) {
	for _, t := range k.Targets {
		b, err := i.outbox.Queue.Records.Get(ctx, i.records.knowledgeName(x, k, t))
		if err != nil {
			return nil, err
		}
		if s := subjectRecords.DecodeOrNew(b); s.Passed != "" || s.Next.Job != (queue.JobID{}) {
			to = append(to, rules.StepTarget{Hash: t.Hash()})
		}
	}
	return to, nil
}

// Person returns how messages name who did something on the page of an incident.
func Person(name string) string {
	if name == "" {
		return "Somebody"
	}
	return name
}

// FormatDay returns a time for people far away from the server.
func FormatDay(t time.Time) string { return t.UTC().Format("2 January 15:04 UTC") }
