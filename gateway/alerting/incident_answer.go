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
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Acknowledge notes that somebody takes care of an incident, whose steps end. by is who, as
// others are told. It returns the incident as it is then, also with [ErrAcknowledged] and
// [ErrResolved]. It returns [ErrNoIncident] if the incident is gone or was opened anew.
func (i *Incidents) Acknowledge(ctx context.Context, at *StoredIncident, by string) (*rules.Incident, error) {
	k, _, err := i.outbox.Engine.Load().KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return nil, err
	}
	ack := time.Duration(0)
	if k != nil && k.Rules.IsStep() {
		ack = k.Rules.Escalate.Ack
	}
	done := false
	x, err := i.changeOpening(ctx, at, func(c *incidentChange) {
		var cancelled []rules.StepJob
		if cancelled, done = c.incident.Acknowledge(c.now, by, ack); done {
			c.drop(slices.Concat(cancelled, c.silenced), notifier.RuleAcknowledged)
		}
	})
	if err != nil {
		return nil, err
	}
	if !done {
		return x, unchanged(x)
	}
	i.outbox.Engine.Load().Shared.Metrics.Ruled(metrics.RuleEscalate, metrics.RuleOutcomeAcknowledged, 1)
	i.tell(event.IncidentAcknowledged, x, by)
	i.logAnswer(event.IncidentAcknowledged, x, by)
	return x, nil
}

// logAnswer writes a line about what a person has done to an incident. by is who; "" if that is
// not known.
func (i *Incidents) logAnswer(what string, x *rules.Incident, by string) {
	key := i.outbox.Engine.Load().NameOfIncident(context.Background(), x)
	i.outbox.Log.Info("incident "+what, zap.String("key", key), zap.String("incident", x.Name), zap.String("user", by))
}

// unchanged returns why an incident could not be changed.
func unchanged(x *rules.Incident) error {
	if x.IsOpen() {
		return ErrAcknowledged
	}
	return ErrResolved
}

// Resolve notes on behalf of a person that an incident is over, and tells those who were
// told of it. by is who. It returns the incident as it is then, also with [ErrResolved].
// It returns [ErrNoIncident] if the incident is gone or was opened anew.
func (i *Incidents) Resolve(ctx context.Context, at *StoredIncident, by string) (*rules.Incident, error) {
	k, settings, err := i.outbox.Engine.Load().KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return nil, err
	}
	if k != nil && !at.Incident.Own && at.Incident.IsOpen() {
		know, err := i.whoKnows(ctx, at.Incident, k)
		if err != nil {
			return nil, err
		}
		if to := slices.Concat(at.Incident.Escalation.Targets, know); len(to) > 0 {
			x, err := i.sendResolution(ctx, at, &notice{key: k, settings: settings, to: to, by: by})
			if err == nil {
				i.logAnswer(event.IncidentResolved, x, by)
			}
			return x, err
		}
	}
	done := false
	x, err := i.changeOpening(ctx, at, func(c *incidentChange) {
		if done = c.incident.IsOpen(); done {
			c.drop(slices.Concat(c.incident.Close(c.now, by), c.silenced), notifier.RuleAcknowledged)
		}
	})
	if err != nil {
		return nil, err
	}
	if !done {
		return x, unchanged(x)
	}
	i.tell(event.IncidentResolved, x, by)
	i.logAnswer(event.IncidentResolved, x, by)
	return x, nil
}

// sendResolution resolves an incident by a message to those who know it.
func (i *Incidents) sendResolution(ctx context.Context, at *StoredIncident, n *notice) (*rules.Incident, error) {
	n.message = &notifier.Message{Title: "Resolved: " + at.Incident.Title, Body: Person(n.by) + " says that this is over.", Type: notifier.Success}
	accepted := i.accept(ctx, at.Incident, n)
	if accepted != nil && !errors.Is(accepted, errIncidentChanged) {
		return nil, accepted
	}
	now, err := i.ByID(ctx, at.Incident.ID)
	if err != nil {
		return nil, err
	}
	if accepted != nil {
		return now.Incident, unchanged(now.Incident)
	}
	return now.Incident, nil
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
	m.Foreign = true // the title is that of another message, and may be a stranger's
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
		if s := decodeSubject(b); s.Passed != "" || s.Next.Job != (queue.JobID{}) {
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
