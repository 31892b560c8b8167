package alerting

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// entryIncident is what an entry does with the record of its incident.
type entryIncident struct {
	d        *dispatch.Delivery
	name, id queue.Hash // the names of the records of the incident, and of fresh
	fresh    string     // the public ID if the entry opens the incident
	keep     time.Duration
	own      bool        // the message names no incident
	full     func() bool // the key has no room for an incident that begins steps

	known  *rules.Incident // after the transaction; nil for none
	events []string        // what has happened

	openFor   time.Duration // how long the incident was open that the message resolves
	escalated bool          // the message resolves an incident whose steps have begun
}

// recordIncident adds the records of the incident of a message to those that its entry
// changes. A message that escalates without naming an incident is one of its own.
func (s *messagePlan) recordIncident(u *entryRules) {
	incident, own := s.draft.Message.Incident.ID, s.draft.Message.Incident.ID == ""
	if own && !s.escalates {
		return
	}
	if own {
		incident = dispatch.OwnIncident(s.draft.ID)
	}
	fresh, place := rules.NewIncidentID(), s.draft.Place()
	u.incident = &entryIncident{
		d: s.draft.Delivery, name: u.uses(s.planner.records.incidentName(place, incident)), id: u.uses(s.planner.records.incidentIDName(fresh)),
		fresh: fresh, keep: s.planner.outbox.Queue.Keep(), own: own,
		full: func() bool { return s.planner.shares.isFull(place) },
	}
}

// update changes the records of the incident by its message, as part of decide.
func (i *entryIncident) update(d *decision) error {
	x, m, now := incidentRecords.Get(d.tx, i.name), i.d.Message, d.now
	i.known, i.events, i.escalated, i.openFor = nil, nil, false, 0
	state := dispatch.StateOf(m)
	var dropped []rules.StepJob
	if i.d.Source == site.SourceEscalation {
		if x == nil || !stillNeeded(i.d, now, x) {
			return errIncidentChanged
		}
		if state == notifier.Open {
			dropped = x.Again()
		}
	}
	rule := notifier.Rule("")
	switch {
	case state == notifier.Open && (x == nil || !x.IsOpen()):
		if d.escalates && i.full() {
			return errShareFull
		}
		before := x
		if x = i.open(); !i.own {
			x.Open(now, m.Type, before, d.hold)
		}
		d.tx.Put(i.id, incidentIDRecord(i.name, d.subjects, now.Add(i.keep)))
		i.events = append(i.events, event.IncidentOpened)
	case x == nil:
		return nil // it is resolved, or was never told
	case state == notifier.Resolved && x.IsOpen():
		i.openFor = max(now.Sub(x.Opened), 0)
		i.escalated = len(x.Escalation.Targets) > 0
		dropped = x.Close(now, i.d.By)
		i.events = append(i.events, event.IncidentResolved)
	case state == notifier.Acknowledged:
		ack := time.Duration(0)
		if d.escalate != nil {
			ack = d.escalate.Ack
		}
		var ok bool
		if dropped, ok = x.Acknowledge(now, cmp.Or(i.d.Format, i.d.Source), ack); ok {
			i.events = append(i.events, event.IncidentAcknowledged)
		}
		rule = notifier.RuleAcknowledged
	case state == notifier.Open && !d.escalates:
		dropped = append(dropped, x.Calm()...)
	}
	if state == notifier.Open || state == notifier.Resolved {
		x.Type, x.Tags = m.Type, tagNames(i.d.To.Targets)
		if i.d.Source != site.SourceEscalation {
			x.Title = incidentTitle(m)
		}
	}
	x.Site, x.Changed, x.Forget = i.d.Site, now, now.Add(i.keep)
	i.known = x
	for _, j := range dropped {
		if d.statuses[j.Job] == queue.Held {
			d.end(j.Job, queue.JobID{Message: d.entry.Message.ID}, rule)
		}
	}
	d.records.putIncident(d.tx, i.name, x)
	return nil
}

// forget takes back that the message opens an incident.
func (i *entryIncident) forget(tx *queue.Tx) {
	i.known, i.events = nil, nil
	tx.Delete(i.name)
	tx.Delete(i.id)
}

// open returns the incident that the message opens.
func (i *entryIncident) open() *rules.Incident {
	m := i.d.Message
	x := &rules.Incident{
		ID: i.fresh, Home: i.d.At.Home, Key: i.d.At.Key, Source: cmp.Or(i.d.Format, i.d.Source), Name: m.Incident.Name, Derived: m.Incident.ID,
		State: notifier.Open, Opened: m.Time,
	}
	if i.own {
		x.Own, x.Name = true, i.d.ID.String()
	}
	return x
}

// incidentTitle returns the title by which people recognise an incident: never the text,
// which may be confidential.
func incidentTitle(m *notifier.Message) string {
	title := strings.TrimSpace(m.Title)
	if m.Format != markup.Text && title != "" {
		title = strings.Join(strings.Fields(markup.Convert(title, m.Format, markup.Text)), " ")
	}
	return markup.TruncateBytes(cmp.Or(title, m.Incident.Name, "An alert without a title"), rules.MaxIncidentTitle)
}

// maxIncidentTags is the maximum number of tags in the record of an incident.
const maxIncidentTags = 20

// tagNames returns the names of the tags of destinations.
func tagNames(targets []notifier.Target) (names []string) {
	for _, t := range targets {
		for _, tag := range t.Tags {
			if _, name := notifier.SplitTag(tag); !slices.Contains(names, name) && len(names) < maxIncidentTags {
				names = append(names, name)
			}
		}
	}
	return names
}

// stillNeeded reports whether a message that the gateway makes about an incident is still
// needed: the incident is open and, if the message begins its steps again, the
// acknowledgement has ended.
func stillNeeded(d *dispatch.Delivery, now time.Time, x *rules.Incident) bool {
	if dispatch.StateOf(d.Message) == notifier.Resolved {
		return x.IsOpen()
	}
	until := x.Acknowledged.Until
	if x.Escalation.Silenced {
		return x.Escalating()
	}
	return x.IsOpen() && x.IsAcknowledged() && !until.IsZero() && !until.After(now)
}
