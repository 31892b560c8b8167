package alerting

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentName returns the name of the record of an incident. place is that of its key,
// and incident is the ID that destinations know it by or, if they know none, that of the
// message which opened it.
func (q *Engine) incidentName(place, incident string) queue.Hash {
	return q.Queue.Hash("incident\x00" + place + "\x00" + incident)
}

// incidentIDName returns the name of the record that maps a public ID.
func (q *Engine) incidentIDName(id string) queue.Hash { return q.Queue.Hash("incident ID\x00" + id) }

// IncidentGroup returns the group of the records of incidents of the key with a place that
// are in a stage (see [rules.Incident.Stage]).
func (q *Engine) IncidentGroup(place string, stage notifier.IncidentState) queue.Hash {
	return q.Queue.Hash("incidents\x00" + place + "\x00" + string(stage))
}

// decodeIncident returns the incident in a record, or nil for none and for a damaged one.
func decodeIncident(record []byte) *rules.Incident {
	if len(record) > 0 && record[0] == outbox.KindIncident {
		if x, err := rules.DecodeIncident(record[1:]); err == nil {
			return x
		}
	}
	return nil
}

// PlaceOfIncident returns the place of the key of an incident.
func PlaceOfIncident(x *rules.Incident) string { return x.Home + "\x00" + x.Key }

// incidentRecord returns the record of an incident.
func (q *Engine) incidentRecord(x *rules.Incident) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindIncident, x.Encode()), Due: x.Due(), Group: q.IncidentGroup(PlaceOfIncident(x), x.Stage())}
}

// incidentIDRecord returns the record that maps the public ID of an incident to the name of
// its record. It is looked at when the incident may be forgotten.
func incidentIDRecord(name queue.Hash, due time.Time) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(outbox.KindIncidentID, name[:]), Due: due}
}

// StoredIncident is an incident with the name of its record.
type StoredIncident struct {
	name queue.Hash
	*rules.Incident
}

// Incidents returns at most n incidents in a stage of the key with a place (see
// [delivery.Place]), in the order of the names of their records, after the one with the
// name after. more reports whether others follow, after the record with the name last.
func (q *Engine) Incidents(ctx context.Context, place string, stage notifier.IncidentState, after queue.Hash, n int) (out []StoredIncident, last queue.Hash, more bool, err error) {
	records, err := q.Queue.CallersGroup(ctx, q.IncidentGroup(place, stage), after, n)
	if err != nil {
		return nil, after, false, err
	}
	last = after
	for _, r := range records {
		last = r.Name
		if x := decodeIncident(r.Data); x != nil {
			out = append(out, StoredIncident{r.Name, x})
		}
	}
	return out, last, len(records) == n, nil
}

// IncidentByID returns the incident with a public ID, or nil if there is none. The ID of an
// earlier opening is none.
func (q *Engine) IncidentByID(ctx context.Context, id string) (*StoredIncident, error) {
	known := rules.IsIncidentID(id)
	b, err := q.Queue.CallersRecord(ctx, q.incidentIDName(id))
	if err != nil {
		return nil, err
	}
	var name queue.Hash // an unknown ID is looked up like a known one, so that it takes as long
	if len(b) == 1+len(name) && b[0] == outbox.KindIncidentID {
		copy(name[:], b[1:])
	}
	if b, err = q.Queue.CallersRecord(ctx, name); err != nil {
		return nil, err
	}
	x := decodeIncident(b)
	if !known || x == nil || x.ID != id {
		return nil, nil
	}
	return &StoredIncident{name, x}, nil
}

// entryIncident is what an entry does with the record of its incident.
type entryIncident struct {
	d        *dispatch.Delivery
	name, id int    // indexes of the names of the records of the incident, and of fresh
	fresh    string // the public ID if the entry opens the incident
	keep     time.Duration
	own      bool // the message names no incident

	known  *rules.Incident // after the transaction; nil for none
	events []string        // what has happened

	escalated bool // the message resolves an incident whose steps have begun
}

// recordIncident adds the records of the incident of a message to those that its entry
// changes. A message that escalates without naming an incident is one of its own.
func (s *messagePlan) recordIncident(u *entryRules) {
	incident, own := s.Message.Incident.ID, s.Message.Incident.ID == ""
	if own && !s.escalates {
		return
	}
	if own {
		incident = dispatch.OwnIncident(s.ID)
	}
	fresh := rules.NewIncidentID()
	u.incident = &entryIncident{
		d: s.Delivery, name: u.name(s.q.incidentName(s.Place(), incident)), id: u.name(s.q.incidentIDName(fresh)),
		fresh: fresh, keep: s.q.App.Load().QueueSettings.Keep, own: own,
	}
}

// update changes the records of the incident by its message, as part of decide.
func (i *entryIncident) update(u *entryRules, now time.Time, old [][]byte, statuses map[queue.JobID]queue.Status, c *queue.RuledChange) error {
	x, m := decodeIncident(old[i.name]), i.d.Message
	i.known, i.events, i.escalated = nil, nil, false
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
		x = i.open()
		c.Records[i.id] = incidentIDRecord(u.names[i.name], now.Add(i.keep))
		i.events = append(i.events, event.IncidentOpened)
	case x == nil:
		return nil // it is resolved, or was never told
	case state == notifier.Resolved && x.IsOpen():
		i.escalated = len(x.Escalation.Targets) > 0
		dropped = x.Close(now, i.d.By)
		i.events = append(i.events, event.IncidentResolved)
	case state == notifier.Acknowledged:
		ack := time.Duration(0)
		if u.escalate != nil {
			ack = u.escalate.Ack
		}
		var ok bool
		if dropped, ok = x.Acknowledge(now, cmp.Or(i.d.Format, i.d.Source), ack); ok {
			i.events = append(i.events, event.IncidentAcknowledged)
		}
		rule = notifier.RuleAcknowledged
	case state == notifier.Open && !u.escalates:
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
		if statuses[j.Job] == queue.Held {
			c.Jobs = append(c.Jobs, queue.JobChange{ID: j.Job, Apply: func(j *queue.Job) {
				dropStep(j, queue.JobID{Message: u.entry.Message.ID}, rule, now)
			}})
		}
	}
	c.Records[i.name] = u.q.incidentRecord(x)
	return nil
}

// forget takes back that the message opens an incident.
func (i *entryIncident) forget(c *queue.RuledChange) {
	i.known, i.events = nil, nil
	c.Records[i.name], c.Records[i.id] = queue.Record{}, queue.Record{}
}

// open returns the incident that the message opens.
func (i *entryIncident) open() *rules.Incident {
	m := i.d.Message
	x := &rules.Incident{
		ID: i.fresh, Home: i.d.Home, Key: i.d.Key, Source: cmp.Or(i.d.Format, i.d.Source), Name: m.Incident.Name, Derived: m.Incident.ID,
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

// forgetIncidentID removes the record that maps a public ID when its incident is gone.
func (q *Engine) forgetIncidentID(ctx context.Context, name queue.Hash, data []byte) error {
	var incident queue.Hash
	copy(incident[:], data[1:])
	return q.Queue.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name, incident}, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		c := &queue.RuledChange{Records: make([]queue.Record, 2)}
		if x := decodeIncident(old[1]); x != nil {
			c.Records[1] = q.incidentRecord(x)
			if q.incidentIDName(x.ID) == name {
				c.Records[0] = incidentIDRecord(incident, q.Queue.Now().Add(q.App.Load().QueueSettings.Keep))
			}
		}
		return c, nil
	}})
}

// IncidentOfMessage returns the incident that a message of the queue is about, or nil if
// there is none, if it is forgotten, or if it was opened anew later.
func (q *Engine) IncidentOfMessage(ctx context.Context, m *queue.Message) *rules.Incident {
	var s queued.Summary
	if s.Decode(m.Summary) != nil || s.Known == "" {
		return nil
	}
	b, err := q.Queue.CallersRecord(ctx, q.Queue.Hash("incident\x00"+s.Known))
	if err != nil {
		return nil // the message can be shown without it
	}
	if x := decodeIncident(b); x != nil && !m.Created.Before(x.Opened) {
		return x
	}
	return nil
}
