package rules

import (
	"reflect"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestIncidentRecord checks that a record has all fields of an incident.
func TestIncidentRecord(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.UnixMicro(1_800_000_000_000_000).Add(time.Duration(minutes) * time.Minute)
	}
	job := StepJob{queue.JobID{Message: queue.NewID(), Index: 3}, 2, 5, "target", queue.Hash{1, 2}}
	x := Incident{
		ID: NewIncidentID(), Home: "site s", Key: "ops", Source: "grafana", Name: "disk", Derived: "abc", Own: true, Site: "s", Title: "Disk full",
		Type: notifier.Failure, State: notifier.Resolved, Tags: []string{"a", "b"}, Opened: at(1), Changed: at(2), Resolved: at(3), ResolvedBy: "Eve",
		Acknowledged: Acknowledgement{"Adam", at(4), at(5)},
		Escalation:   Escalation{2, 5, at(6), true, true, true, "disk", []StepTarget{{5, "target"}}, []StepJob{job, {}}, []StepJob{job}},
		Begun:        []BegunStep{{1, 5, at(6), StepTold}, {2, 5, at(7), StepSending}},
		Unconfirmed:  []StepJob{{}, job},
		Forget:       at(7),
	}
	for i := range reflect.ValueOf(x).NumField() {
		if reflect.ValueOf(x).Field(i).IsZero() {
			t.Errorf("the test does not set %s", reflect.TypeFor[Incident]().Field(i).Name)
		}
	}
	got, err := DecodeIncident(x.Encode())
	if err != nil || !reflect.DeepEqual(*got, x) {
		t.Errorf("got  %+v, %v\nwant %+v", *got, err, x)
	}
	if _, err := DecodeIncident(x.Encode()[:40]); err == nil {
		t.Error("a record that was cut is read")
	}
}

// TestIncidentID checks that public IDs have 128 random bits, and which texts are none.
func TestIncidentID(t *testing.T) {
	a, b := NewIncidentID(), NewIncidentID()
	if a == b || !IsIncidentID(a) || len(a) != 26 {
		t.Errorf("%q and %q", a, b)
	}
	for _, s := range []string{"", a[:25], a + "a", "A" + a[1:], "1" + a[1:], "\n" + a[1:], a[:25] + "="} {
		if IsIncidentID(s) {
			t.Errorf("%q is an ID", s)
		}
	}
}
