package device

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// day is a day of March at noon.
func day(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }

// TestState checks when a key is told that a device does not answer, and what.
func TestState(t *testing.T) {
	for name, tt := range map[string]struct {
		s       State
		now     time.Time
		due     time.Time
		silent  bool
		problem string
	}{
		"new":                    {State{Created: day(1)}, day(30), time.Time{}, false, ""},
		"nothing was sent since": {State{Created: day(1), Sent: day(2), Seen: day(2)}, day(30), time.Time{}, false, ""},
		"two are missing":        {State{Created: day(1), Sent: day(2), Missing: 2}, day(3), day(15), false, ""},
		"three are missing":      {State{Created: day(1), Sent: day(2), Missing: 3}, day(3), day(3), true, "none of the last 3 messages"},
		"five are missing": {
			State{Created: day(1), Sent: day(2), Seen: day(1), Missing: 5},
			day(3), day(3), true,
			"none of the last 5 messages",
		},
		"three were missing, it is told": {
			State{Created: day(1), Sent: day(2), Missing: 3, Told: true},
			day(30),
			time.Time{},
			false,
			"none of the last 3 messages",
		},
		"never seen, not yet": {State{Created: day(1), Sent: day(2)}, day(15).Add(-1), day(15), false, ""},
		"never seen":          {State{Created: day(1), Sent: day(2)}, day(15), day(15), true, "no message since 1 March 12:00 UTC"},
		"not seen for 14 days": {
			State{Created: day(1), Seen: day(5), Sent: day(6), Missing: 1},
			day(19), day(19), true,
			"no message since 5 March 12:00 UTC",
		},
		"not seen, it is told": {
			State{Created: day(1), Seen: day(5), Sent: day(6), Told: true},
			day(30),
			time.Time{},
			false,
			"no message since 5 March",
		},
	} {
		s := tt.s
		if due, silent := s.due(tt.now), s.silent(tt.now); !due.Equal(tt.due) || silent != tt.silent {
			t.Errorf("%s: due %s, silent %t", name, due, silent)
		}
		if got := s.Problem(tt.now); (tt.problem == "") != (got == "") || !strings.Contains(got, tt.problem) {
			t.Errorf("%s: the problem is %q", name, got)
		}
		if told := s.tell(tt.now); told != tt.silent || s.Told != (tt.s.Told || tt.silent) || s.tell(tt.now) {
			t.Errorf("%s: told %t, %+v", name, told, s)
		}
	}
}

// TestStateChanges checks that a receipt ends what was wrong.
func TestStateChanges(t *testing.T) {
	d, s := &Device{ID: "id", Name: "phone", Created: day(1)}, new(State)
	s.pushed(d, ops, day(2))
	if want := (State{ID: "id", Name: "phone", Place: ops, Created: day(1), Sent: day(2)}); *s != want {
		t.Errorf("%+v, want %+v", *s, want)
	}
	s.Missing, s.Told = 3, true
	s.pushed(d, ops, day(3))
	if s.Missing != 3 || !s.Told {
		t.Errorf("a push alone: %+v", *s)
	}
	s.confirmed(d, ops, day(4))
	if want := (State{ID: "id", Name: "phone", Place: ops, Created: day(1), Sent: day(3), Seen: day(4)}); *s != want {
		t.Errorf("%+v, want %+v", *s, want)
	}
}

// TestRefused checks that a key is told once a day that a push service refuses messages, and
// that a push that is taken ends it.
func TestRefused(t *testing.T) {
	d, s := &Device{ID: "id", Name: "phone", Created: day(1)}, new(State)
	for i, tt := range []struct {
		now  time.Time
		tell bool
	}{{day(2), true}, {day(2), false}, {day(3).Add(-1), false}, {day(3), true}} {
		if tell := s.refuse(d, ops, "it answers 400", tt.now); tell != tt.tell || s.ID != "id" || s.Place != ops {
			t.Errorf("%d: told %t, %+v", i, tell, s)
		}
	}
	if got := s.Problem(day(3)); got != "It has not got the last message: it answers 400." {
		t.Errorf("the problem is %q", got)
	}
	if m := s.notTaken("phone"); m.Title != "No messages for phone" || m.Type != "warning" || !strings.Contains(m.Body, "it answers 400. If") {
		t.Errorf("%+v", m)
	}
	stored, err := decode(s.encode(), (*State).fields)
	if err != nil || stored.Refused != s.Refused || !stored.RefusedTold.Equal(s.RefusedTold) {
		t.Errorf("stored it is %+v, %v", *stored, err)
	}
	s.pushed(d, ops, day(3))
	if s.Refused != "" || s.Problem(day(3)) != "" || s.refuse(d, ops, "again", day(3)) {
		t.Errorf("after a push: %+v", s)
	}
}

// TestTexts checks what a key is told about its devices.
func TestTexts(t *testing.T) {
	d := &Device{Name: "phone"}
	if m := d.added(); m.Title != "New device: phone" || !strings.HasPrefix(m.Body, "From now on") || m.Type != "info" {
		t.Errorf("%+v", m)
	}
	d.By = "jo"
	if m := d.added(); !strings.HasPrefix(m.Body, "jo has added it. From now on") {
		t.Errorf("%+v", m)
	}
	if m := d.gone(); m.Title != "Device gone: phone" || m.Type != "warning" {
		t.Errorf("%+v", m)
	}
	if m := new(State).noAnswer("phone"); m.Title != "No answer from phone" || m.Type != "warning" {
		t.Errorf("%+v", m)
	}
}

// TestJSON checks what clients see of a device that is known only in part.
func TestJSON(t *testing.T) {
	d := &Device{
		ID: "id", Name: "phone", Created: day(1).Local(), By: "jo",
		Subscription: subscriptionAt(t, "https://fcm.googleapis.com:443/1"),
	}
	known := &State{Sent: day(2).Local(), Missing: 2}
	for want, x := range map[string]JSON{
		`{"id":"id","name":"phone","tags":[]}`: d.Short(),
		`{"id":"id","name":"phone","tags":[],"created":"2026-03-01T12:00:00Z","by":"jo",` +
			`"service":"fcm.googleapis.com"}`: d.JSON(nil),
		`{"id":"id","name":"phone","tags":[],"created":"2026-03-01T12:00:00Z","by":"jo","service":"fcm.googleapis.com",` +
			`"sent":"2026-03-02T12:00:00Z","missing":2}`: d.JSON(known),
	} {
		if got, err := json.Marshal(x); err != nil || string(got) != want {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
	}
}
