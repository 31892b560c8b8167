package notifier

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestIncidentName(t *testing.T) {
	long := strings.Repeat("x", MaxIncidentName+1)
	for name, tt := range map[string]struct {
		in, want string
		hashed   bool
		err      string
	}{
		"a name":               {in: "disk db1", want: "disk db1"},
		"white space around":   {in: " \tdisk db1\n", want: "disk db1"},
		"none":                 {in: " ", want: ""},
		"as long as allowed":   {in: long[1:], want: long[1:]},
		"too long":             {in: long, want: "sha256:", hashed: true},
		"a line break":         {in: "disk\ndb1", err: "control character"},
		"a control character":  {in: "disk\x00db1", err: "control character"},
		"one of Unicode":       {in: "disk\u0085db1", err: "control character"},
		"other languages":      {in: "ディスク", want: "ディスク"},
		"long, with a control": {in: long + "\x01", err: "control character"},
	} {
		got, hashed, err := IncidentName(tt.in)
		if tt.hashed {
			tt.want = HashIncidentName(tt.in)
			if len(got) > MaxIncidentName || got == HashIncidentName(tt.in+"y") {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if got != tt.want || hashed != tt.hashed || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %q, %t, %v", name, got, hashed, err)
		}
	}
}

// TestIncidentID checks that the ID is the same at every gateway and for every
// version of the program: tools outside know the incident by it.
func TestIncidentID(t *testing.T) {
	const want = "vsww4bmj77ymdmr6b2mdus6hmgnoi66j"
	i := Incident{Name: "disk host-7"}
	if got := i.For("ops", "").ID; got != want || !regexp.MustCompile(`^[a-z2-7]{32}$`).MatchString(got) {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := map[string]string{want: "ops"}
	for name, other := range map[string]Incident{
		"another key":    i.For("web", ""),
		"no key":         i.For("", ""),
		"a source":       i.For("ops", "grafana"),
		"another name":   Incident{Name: "disk host-8"}.For("ops", ""),
		"key and source": i.For("opsgrafana", ""),
	} {
		if of := seen[other.ID]; of != "" {
			t.Errorf("%s has the ID of %s", name, of)
		}
		seen[other.ID] = name
	}
	if got := (Incident{State: Acknowledged}).For("ops", ""); got != (Incident{}) {
		t.Errorf("an incident without a name is %+v", got)
	}
}

func TestIncidentState(t *testing.T) {
	for typ, want := range map[Type]IncidentState{Failure: Open, Warning: Open, Success: Resolved, Info: Updated, "": Updated} {
		m := (&Message{Type: typ, Incident: Incident{Name: "x"}.For("", "")}).withDefaults()
		if got := m.Incident.State; got != want {
			t.Errorf("a message of type %q says %s, want %s", typ, got, want)
		}
	}
	m := (&Message{Type: Info, Incident: Incident{Name: "x", State: Acknowledged}.For("", "")}).withDefaults()
	if m.Incident.State != Acknowledged {
		t.Errorf("an acknowledgement is %s", m.Incident.State)
	}
	if m := (&Message{Type: Failure}).withDefaults(); m.Incident != (Incident{}) {
		t.Errorf("a message without an incident has %+v", m.Incident)
	}
}

// TestNotificationID checks that each part of a divided message replaces the
// same part of an earlier one, and no other.
func TestNotificationID(t *testing.T) {
	m := Message{Incident: Incident{Name: "disk"}.For("ops", "")}
	id := m.Incident.ID
	for part, want := range map[int]string{0: id, 1: id[:30] + "-2", 11: id[:29] + "-12"} {
		m.Part = part
		if got := m.NotificationID(); got != want {
			t.Errorf("part %d: %s, want %s", part, got, want)
		}
	}
	m.Incident = Incident{}
	if got := m.NotificationID(); got != "" {
		t.Errorf("without an incident: %s", got)
	}
}

// TestAlertsOfIncident checks when an alert joins the open alerts of an incident.
func TestAlertsOfIncident(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for _, tt := range []struct {
		before, now []string
		joined      bool
	}{
		{nil, []string{"a"}, false},
		{[]string{"a"}, []string{"a"}, false},
		{[]string{"a", "b"}, []string{"b", "a", "a"}, false},
		{[]string{"a", "b"}, []string{"b"}, false},
		{[]string{"a"}, []string{"a", "b"}, true},
		{[]string{"a", "b"}, []string{"b", "c"}, true},
		{[]string{"a"}, nil, false},
		{[]string{"a"}, many, false}, // it is not known which they are
		{many, []string{"a"}, false},
	} {
		before, now := AlertWords(tt.before), Incident{Alerts: AlertWords(tt.now)}
		if got := now.Joined(before); got != tt.joined {
			t.Errorf("%.5q after %.5q: %t", tt.now, tt.before, got)
		}
	}
}
