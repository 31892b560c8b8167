package rules

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestKeySilences checks how the silences of a key begin and end, and when they have to be
// looked at.
func TestKeySilences(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	s := new(KeySilences)
	for i := range byte(MaxSilences) {
		if err := s.Add(now, Silence{ID: uuid.UUID{1, i}, Tag: AllTags, Until: now.Add(time.Duration(i+1) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(now, Silence{}); !errors.Is(err, ErrTooManySilences) {
		t.Errorf("one too many: %v", err)
	}
	if due := s.Due(now); !due.Equal(now.Add(time.Minute)) {
		t.Errorf("due at %s", due)
	}
	s.CountKept([]uuid.UUID{{1, 3}, {9}}, nil)
	if x, err := s.End(now, uuid.UUID{1, 3}, nil); err != nil || x.ID != (uuid.UUID{1, 3}) ||
		x.Count != 1 || len(s.All) != MaxSilences-1 || !s.Due(now).Equal(now) {
		t.Errorf("ended %+v, %v; due at %s", x, err, s.Due(now))
	}
	for _, id := range []uuid.UUID{{1, 3}, {9}, {}} {
		if _, err := s.End(now, id, nil); !errors.Is(err, ErrNoSilence) {
			t.Errorf("%s: %v", id, err)
		}
	}
	first := s.Ended
	now = now.Add(time.Hour)
	if ended := s.Expire(now); len(ended) != 59 || ended[0].ID != (uuid.UUID{1, 0}) {
		t.Errorf("%d have ended", len(ended))
	}
	if s.LookedAt(first); s.Ended.IsZero() {
		t.Error("what the silences held that have ended since is not looked at")
	}
	if s.LookedAt(s.Ended); !s.Ended.IsZero() || s.Expire(now) != nil || s.Empty() {
		t.Errorf("%+v", s)
	}
	if err := s.Add(now, Silence{ID: uuid.UUID{2}, Until: now.Add(time.Hour)}); err != nil {
		t.Errorf("after some have ended: %v", err)
	}
	now = now.Add(10 * time.Hour)
	if s.LookedAt(now); len(s.Expire(now)) == 0 || s.Empty() {
		t.Errorf("%+v", s)
	}
	if s.LookedAt(now); !s.Empty() {
		t.Errorf("%+v", s)
	}
}

// TestPlannedSilences checks when the record of a key is due with silences that begin later,
// and that each is told once.
func TestPlannedSilences(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	s := new(KeySilences)
	silent := Silence{ID: uuid.UUID{1}, Tag: AllTags, From: now.Add(2 * time.Hour), Until: now.Add(5 * time.Hour)}
	told := Silence{ID: uuid.UUID{2}, Tag: AllTags, From: now.Add(time.Hour), Until: now.Add(4 * time.Hour), Tell: true}
	for _, x := range []Silence{silent, told} {
		if err := s.Add(now, x); err != nil {
			t.Fatal(err)
		}
	}
	step := func(hours int, untold bool, end bool) {
		t.Helper()
		if due := s.Due(now); !due.Equal(now.Truncate(time.Hour).Add(time.Duration(hours) * time.Hour)) {
			t.Errorf("due at %s", due)
		}
		now = now.Add(time.Duration(hours) * time.Hour)
		x, over := s.Untold(now)
		if (x != nil) != untold || over != end {
			t.Errorf("at %s, %+v has to be told, %v", now, x, over)
		}
		if untold && (!s.Told(now, told.ID, end) || s.Told(now, told.ID, end)) {
			t.Error("it is not told once")
		}
	}
	step(1, true, false)
	step(1, false, false)
	if begun := s.Begin(now); len(begun) != 1 || begun[0].ID != silent.ID || s.Begin(now) != nil {
		t.Errorf("%+v have begun", begun)
	}
	step(2, true, true)
	s.LookedAt(now)
	step(1, false, false)
	if ended := s.Expire(now); len(ended) != 1 || len(s.All) != 0 {
		t.Errorf("%+v have ended", ended)
	}
	missed := Silence{ID: uuid.UUID{3}, From: now.Add(time.Hour), Until: now.Add(2 * time.Hour), Tell: true}
	if err := s.Add(now, missed); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Hour)
	if x, _ := s.Untold(now); x != nil || len(s.Expire(now)) != 1 {
		t.Errorf("a silence in which no gateway ran is told: %+v", x)
	}
}
