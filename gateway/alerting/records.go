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

// Each of these records has one value. The jobs that a damaged lane has held are released (see
// [Engine.Recheck]). A damaged subject knows nothing. What damaged silences have held is told.
var (
	laneRecords     = outbox.Typed[rules.Lane]{Kind: KindLane, Fields: (*rules.Lane).Fields}
	subjectRecords  = outbox.Typed[rules.Subject]{Kind: KindSubject, Fields: (*rules.Subject).Fields}
	incidentRecords = outbox.Typed[rules.Incident]{Kind: KindIncident, Fields: (*rules.Incident).Fields}
	silencesRecords = outbox.Typed[rules.KeySilences]{Kind: KindSilences, Fields: (*rules.KeySilences).Fields}
)

// putLane stores a lane, or removes it if nothing has to be remembered. spent is the group of a
// lane that holds nothing.
func putLane(tx *queue.Tx, name queue.Hash, l *rules.Lane, now time.Time, spent queue.Hash) {
	var group queue.Hash
	switch {
	case l.Empty(now):
		tx.Delete(name)
		return
	case l.OnlySpent():
		group = spent
	case l.Silenced():
		group = l.Group
	}
	laneRecords.Put(tx, name, l, l.Due(now), group)
}

// putSubject stores a subject.
func putSubject(tx *queue.Tx, name queue.Hash, s *rules.Subject) {
	subjectRecords.Put(tx, name, s, s.Forget, s.Group)
}

// laneName returns the name of the record of a lane. place is the place of the key, followed by the
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
func statusesOf(ids []queue.JobID, tx *queue.Tx) (map[queue.JobID]queue.Status, error) {
	out := map[queue.JobID]queue.Status{}
	all, err := tx.Status(ids...)
	for i, status := range all {
		out[ids[i]] = status
	}
	return out, err
}

// subjectGroup returns the group of the records that may be forgotten of the key with a place,
// except incidents: what its destinations know, for example.
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

// incidentName returns the name of the record of an incident. place is the place of its key.
// incident is the ID that destinations know the incident by or, if they know none, the ID of the
// message that opened it.
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

// PlaceOfIncident returns the place of the key of an incident: where the key is defined, and
// its name.
func PlaceOfIncident(x *rules.Incident) string { return x.Home + "\x00" + x.Key }

// putIncident stores an incident.
func (r records) putIncident(tx *queue.Tx, name queue.Hash, x *rules.Incident) {
	incidentRecords.Put(tx, name, x, x.Due(), r.incidentGroup(PlaceOfIncident(x), x.Stage()))
}

// incidentIDRecord returns the record that maps the public ID of an incident to the name of its
// record. It is due when the incident may be forgotten. The ID of an earlier opening may be
// forgotten before, so its group is the group of what destinations of the key know.
func incidentIDRecord(name, group queue.Hash, due time.Time) queue.Record {
	return queue.Record{Data: outbox.EncodeRecord(KindIncidentID, name[:]), Due: due, Group: group}
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

// putSilences stores the silences of a key.
func (r records) putSilences(tx *queue.Tx, name queue.Hash, s *rules.KeySilences, now time.Time) {
	if s.Empty() {
		tx.Delete(name)
	} else {
		silencesRecords.Put(tx, name, s, s.Due(now), r.silencesGroup())
	}
}
