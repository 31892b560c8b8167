package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Several fields must all match, and of several silences the one that ends last counts.
func TestSilencesMatch(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration, s Silence) Silence {
		s.ID, s.Until = uuid.New(), now.Add(d)
		return s
	}
	db1 := notifier.Incident{Name: "db1"}.For("ops", "")
	all := Silences{
		in(time.Hour, Silence{Title: "Disk"}), in(2*time.Hour, Silence{Title: "disk is", Tag: "phone"}),
		in(time.Hour, Silence{Incident: "db1", Title: "x"}),
		in(-time.Second, Silence{Tag: AllTags}), in(40*24*time.Hour, Silence{Tag: AllTags}),
		in(time.Minute, Silence{Incident: db1.ID, Tag: "2:chat"}),
	}
	for _, tt := range []struct {
		incident notifier.Incident
		title    string
		tags     []string
		want     int // -1 for none
	}{
		{title: "disk is full", want: 0},
		{title: "DISK", want: 0},
		{title: "OK: disk", want: -1},
		{title: "dis", want: -1},
		{title: "disk is full", tags: []string{"2:Phone"}, want: 1},
		{incident: db1, title: "y", want: -1},
		{incident: db1, title: "xyz", want: 2},
		{title: "", tags: []string{"phone"}, want: -1},
	} {
		got := all.Match(now, tt.incident, tt.title, tt.tags)
		if tt.want < 0 && got != nil || tt.want >= 0 && (got == nil || got.ID != all[tt.want].ID) {
			t.Errorf("%v: got %+v", tt, got)
		}
	}
	all = append(all, Silence{ID: uuid.New(), From: now.Add(time.Second), Until: now.Add(time.Hour), Tag: AllTags})
	if left, ended := all.Left(now); len(left) != 5 || len(ended) != 2 || len(all.Near(now, nil)) != 5 {
		t.Errorf("%d are left, and %d have ended", len(left), len(ended))
	}
	if got := all.Match(now, notifier.Incident{}, "x", nil); got != nil {
		t.Errorf("%+v matches before it begins", got)
	}
}

func TestSilenceNormalize(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	good := Silence{Title: "  disk ", Until: now.Add(time.Hour), Who: strings.Repeat("ä", 300)}
	late := Silence{Title: "x", From: now.Add(-time.Hour), Until: now.Add(time.Hour)}
	if err := late.Normalize(now); err != nil || !late.From.Equal(now) {
		t.Errorf("%+v, %v", late, err)
	}
	if err := good.Normalize(now); err != nil || good.Title != "disk" || len(good.Who) > maxSilenceText {
		t.Errorf("%+v, %v", good, err)
	}
	for want, s := range map[string]Silence{
		"match nothing": {Title: " "},
		"tag:":          {Tag: "a b"},
		"longer than":   {Title: strings.Repeat("x", 201)},
		"reason":        {Title: "x", Reason: strings.Repeat("x", 201)},
		"incident":      {Incident: "a\nb"},
		"one line":      {Title: "x", Reason: "a\x00b"},
		"past":          {Title: "x", Until: now},
		"30 days":       {Title: "x", Until: now.Add(MaxSilenceTime + time.Second)},
		"before it":     {Title: "x", From: now.Add(time.Hour), Until: now.Add(time.Hour)},
		"a year":        {Title: "x", From: now.Add(maxSilencePlan + time.Second), Until: now.Add(maxSilencePlan + time.Hour)},
		"longer":        {Title: "x", From: now.Add(time.Hour), Until: now.Add(MaxSilenceTime + time.Hour + time.Second)},
	} {
		if s.Until.IsZero() {
			s.Until = now.Add(time.Hour)
		}
		if err := s.Normalize(now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// silencedLane is a destination during a silence of everything.
type silencedLane struct {
	now      time.Time
	rules    *Rules
	lane     *Lane
	subjects map[string]*Subject
	held     map[queue.JobID]bool
	next     uint16
}

func newSilencedLane() *silencedLane {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	silences := Silences{{ID: uuid.New(), Until: now.Add(time.Hour), Tag: AllTags}}
	return &silencedLane{now, new(Rules).WithSilences(silences), new(Lane), map[string]*Subject{}, map[queue.JobID]bool{}, 0}
}

func (s *silencedLane) id() uuid.UUID {
	s.next++
	return uuid.UUID{14: byte(s.next >> 8), 15: byte(s.next)}
}

// arrive lets a state of an incident come in. The records are stored and read again.
func (s *silencedLane) arrive(t *testing.T, incident string, typ notifier.Type) Verdict {
	t.Helper()
	x := Item{Job: queue.JobID{Message: s.id()}, Type: typ, State: notifier.StateOf(typ), Subject: incident, Time: s.now}
	subject := s.subjects[incident]
	if subject == nil {
		subject = new(Subject)
	}
	v := s.rules.Arrive(Arrival{
		Now: s.now, Lane: s.lane, Subject: subject, Item: x,
		Waits: func(id queue.JobID) bool { return s.held[id] }, NewID: s.id,
	})
	s.held[x.Job] = v.Outcome == Held
	for _, o := range v.Evicted {
		s.held[o.Job] = false
	}
	var err error
	if s.subjects[incident], err = decode(subject.encode(), (*Subject).Fields); err != nil {
		t.Fatal(err)
	}
	if s.lane, err = decode(s.lane.encode(), (*Lane).Fields); err != nil {
		t.Fatal(err)
	}
	return v
}

// More problems begin during a silence than a lane holds. If all are over at its end, there is no
// message, and otherwise one that counts the open ones.
func TestSilencedStorm(t *testing.T) {
	racetest.SkipIfSlow(t)
	for _, open := range []int{0, 7} {
		s := newSilencedLane()
		const storm = MaxItems + 300
		for i := range storm {
			name := fmt.Sprint("host ", i)
			s.arrive(t, name, notifier.Warning)
			if v := s.arrive(t, name, notifier.Failure); v.Outcome == Send || v.Outcome == Counted {
				t.Fatalf("%s: outcome %d", name, v.Outcome)
			}
		}
		if s.lane.Empty(s.now) || !s.lane.Due(s.now).Equal(s.now.Add(time.Hour)) {
			t.Errorf("due at %s", s.lane.Due(s.now))
		}
		for i := range storm - open {
			if v := s.arrive(t, fmt.Sprint("host ", i), notifier.Success); v.Outcome != Silenced {
				t.Fatalf("the resolution of %d: outcome %d", i, v.Outcome)
			}
		}
		s.now = s.now.Add(2 * time.Hour)
		g := s.rules.Release(s.now, s.lane, Lookup{
			func(id queue.JobID) bool { return s.held[id] }, func(queue.JobID) bool { return false },
			func(string) bool {
				return false
			},
		})
		switch {
		case open == 0 && (g != nil || !s.lane.Empty(s.now)):
			t.Errorf("%+v is told, although nothing is open", g)
		case open > 0 && (g == nil || g.More.Counts[3] != open || g.More.ID == uuid.UUID{}):
			t.Errorf("%+v is told of %d that are open", g, open)
		}
	}
}

// What a destination knows before a silence begins is told to be over during it.
func TestSilenceOfKnown(t *testing.T) {
	s := newSilencedLane()
	silences := s.rules.Silences
	s.rules = new(Rules)
	if v := s.arrive(t, "db1", notifier.Warning); v.Outcome != Send {
		t.Fatalf("outcome %d", v.Outcome)
	}
	s.rules = new(Rules).WithSilences(silences)
	if v := s.arrive(t, "db1", notifier.Failure); v.Outcome != Held || v.Silence != silences[0].ID {
		t.Errorf("the failure: %+v", v)
	}
	if v := s.arrive(t, "db1", notifier.Success); v.Outcome != Send || len(v.Replaced) != 1 {
		t.Errorf("the resolution: %+v", v)
	}
	if v := s.arrive(t, "db1", notifier.Failure); v.Outcome != Held {
		t.Errorf("the next failure: %+v", v)
	}
	if v := s.arrive(t, "db1", notifier.Success); v.Outcome != Silenced || len(v.Evicted) != 1 || v.Evicted[0].By != (queue.JobID{}) {
		t.Errorf("its resolution: %+v", v)
	}
}
