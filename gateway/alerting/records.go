package alerting

import (
	"crypto/sha256"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The kinds of records of rules and silences.
var (
	// A key with rules has a record of each of its incidents, and one for each of its openings that
	// maps the public ID to the name of the first. What is under way stays: see [shares].
	KindIncident   = outbox.SharedKind('i', "incidents", 4, 100_000, outbox.Lasting)
	KindIncidentID = outbox.SharedKind('n', "IDs of incidents", 4, 100_000, outbox.Lasting)

	// What a destination knows of an incident or a text. It has its share together with the
	// incidents.
	KindSubject = outbox.SharedKind('s', "subjects", 4, 100_000, outbox.Lasting)

	// What is held for a destination of a key, and what was sent to it in the time of a rate. A
	// message to a key with rules is stored before it is sent. In the same transaction, the
	// rules decide about each of its jobs. What is held goes with its messages, which are larger.
	// What was sent has its share together with the incidents.
	KindLane = outbox.SharedKind('l', "lanes", 4, 100_000, outbox.Lasting)

	// The silences of a key are one record. A further record changes with each of them.
	KindSilences        = outbox.CountedKind('q', "silences", 16, 200, outbox.Lasting, "end one, or wait until one has ended")
	KindSilencesVersion = outbox.OwnKind('v', "version of all silences")
)

// records names, encodes and groups what this package stores in the queue.
type records struct{ outbox *outbox.Outbox }

// decodeLane returns the lane in a record. A damaged one is empty; then the jobs that it
// has held are released (see [Engine.Recheck]).
func decodeLane(record []byte) *rules.Lane {
	if outbox.KindOf(record) == KindLane {
		if l, err := rules.DecodeLane(record[1:]); err == nil {
			return l
		}
	}
	return new(rules.Lane)
}

// laneRecord returns the record of a lane, which is empty if nothing has to be remembered.
func laneRecord(l *rules.Lane, now time.Time) queue.Record {
	if l.Empty(now) {
		return queue.Record{}
	}
	r := queue.Record{Data: outbox.EncodeRecord(KindLane, l.Encode()), Due: l.Due(now)}
	if l.Silenced() {
		r.Group = l.Group
	}
	return r
}

// decodeSubject returns the subject in a record. A damaged one knows nothing.
func decodeSubject(record []byte) *rules.Subject {
	if outbox.KindOf(record) == KindSubject {
		if s, err := rules.DecodeSubject(record[1:]); err == nil {
			return s
		}
	}
	return new(rules.Subject)
}

// subjectRecord returns the record of a subject.
func subjectRecord(s *rules.Subject) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(KindSubject, s.Encode()), Due: s.Forget, Group: s.Group}
}

// laneName returns the name of the record of a lane. place is that of the key, with the
// egress policy of its destinations if they have one.
func (r records) laneName(place, destination string) queue.Hash {
	return r.outbox.Queue.Hash("lane\x00" + place + "\x00" + destination)
}

// subjectName returns the name of the record of a subject at a destination. place is as
// in laneName.
func (r records) subjectName(place, subject, destination string) queue.Hash {
	return r.outbox.Queue.Hash("subject\x00" + place + "\x00" + subject + "\x00" + destination)
}

// subjectOf returns what dedupe and the order of incidents compare a message by.
func subjectOf(d *dispatch.Delivery) string {
	m := d.Message
	if state := itemState(m); state != "" {
		return incidentSubject(m.Incident.ID)
	}
	sum := sha256.New()
	for _, text := range []string{m.Incident.ID, string(dispatch.StateOf(m)), string(m.Type), m.Title, m.Body} {
		sum.Write([]byte(text + "\x00"))
	}
	return "text " + string(sum.Sum(nil))
}

// incidentSubject returns the subject of the states of an incident.
func incidentSubject(id string) string { return "incident " + id }

// knowledgeName returns the name of the record of what a destination of a key knows of an
// incident.
func (r records) knowledgeName(x *rules.Incident, k *site.Key, t notifier.Target) queue.Hash {
	return r.subjectName(PlaceOfIncident(x)+t.Policy().Key(), incidentSubject(x.Derived), site.DestinationName(t, k.Limits))
}

// statusesOf returns the statuses of jobs by their IDs.
func statusesOf(ids []queue.JobID, status queue.StatusFunc) (map[queue.JobID]queue.Status, error) {
	out := map[queue.JobID]queue.Status{}
	if len(ids) == 0 {
		return out, nil
	}
	all, err := status(ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		out[id] = all[i]
	}
	return out, nil
}

// keepSubject returns the record of a subject that does not change.
func keepSubject(old []byte) queue.Record {
	if len(old) == 0 {
		return queue.Record{}
	}
	return subjectRecord(decodeSubject(old))
}

// subjectGroup returns the group of the records of what destinations of the key with a place
// know, and of what else may be forgotten that is no incident.
func (r records) subjectGroup(place string) queue.Hash {
	return r.outbox.Queue.Hash("subjects\x00" + place)
}

// rememberedGroups returns the groups of the records that count for the share of the key with
// a place.
func (r records) rememberedGroups(place string) []queue.Hash {
	groups := []queue.Hash{r.subjectGroup(place)}
	for _, stage := range rules.Stages {
		groups = append(groups, r.incidentGroup(place, stage))
	}
	return groups
}

// incidentName returns the name of the record of an incident. place is that of its key,
// and incident is the ID that destinations know it by or, if they know none, that of the
// message which opened it.
func (r records) incidentName(place, incident string) queue.Hash {
	return r.outbox.Queue.Hash("incident\x00" + place + "\x00" + incident)
}

// incidentIDName returns the name of the record that maps a public ID.
func (r records) incidentIDName(id string) queue.Hash {
	return r.outbox.Queue.Hash("incident ID\x00" + id)
}

// incidentGroup returns the group of the records of incidents of the key with a place that
// are in a stage (see [rules.Incident.Stage]).
func (r records) incidentGroup(place string, stage notifier.IncidentState) queue.Hash {
	return r.outbox.Queue.Hash("incidents\x00" + place + "\x00" + string(stage))
}

// decodeIncident returns the incident in a record, or nil for none and for a damaged one.
func decodeIncident(record []byte) *rules.Incident {
	if outbox.KindOf(record) == KindIncident {
		if x, err := rules.DecodeIncident(record[1:]); err == nil {
			return x
		}
	}
	return nil
}

// PlaceOfIncident returns the place of the key of an incident: where the key is defined, and
// its name.
func PlaceOfIncident(x *rules.Incident) string { return x.Home + "\x00" + x.Key }

// incident returns the record of an incident.
func (r records) incident(x *rules.Incident) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(KindIncident, x.Encode()), Due: x.Due(), Group: r.incidentGroup(PlaceOfIncident(x), x.Stage())}
}

// incidentIDRecord returns the record that maps the public ID of an incident to the name of
// its record. It is looked at when the incident may be forgotten. That of an earlier opening may be
// forgotten before, so it has the group of what destinations of the key know.
func incidentIDRecord(name, group queue.Hash, due time.Time) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(KindIncidentID, name[:]), Due: due, Group: group}
}

// decodeSilences returns the silences in a record. A damaged one has none: then what they
// have held is told.
func decodeSilences(record []byte) *rules.KeySilences {
	if outbox.KindOf(record) == KindSilences {
		if s, err := rules.DecodeKeySilences(record[1:]); err == nil {
			return s
		}
	}
	return new(rules.KeySilences)
}

// silencesName returns the name of the record of the silences of the key with a place.
func (r records) silencesName(place string) queue.Hash {
	return r.outbox.Queue.Hash("silences\x00" + place)
}

// silencesGroup returns the group of all records of silences.
func (r records) silencesGroup() queue.Hash { return r.outbox.Queue.Hash("all silences") }

// silencesVersion returns the name of a record that changes with each silence, so that
// gateways that share a store see in one read that there is something new.
func (r records) silencesVersion() queue.Hash {
	return r.outbox.Queue.Hash("the version of all silences")
}

// silencedLanes returns the group of the lanes of a key in which silences hold something.
func (r records) silencedLanes(place string) queue.Hash {
	return r.outbox.Queue.Hash("silenced\x00" + place)
}

// silences returns the record of the silences of a key.
func (r records) silences(s *rules.KeySilences, now time.Time) queue.Record {
	if s.Empty() {
		return queue.Record{}
	}
	return queue.Record{Data: outbox.EncodeRecord(KindSilences, s.Encode()), Due: s.Due(now), Group: r.silencesGroup()}
}
