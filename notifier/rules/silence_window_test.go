package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// silenceWindow returns a window that matches titles; "" for all.
func silenceWindow(t *testing.T, args, title string) SilenceWindow {
	t.Helper()
	w, err := ParseWindow(strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	return SilenceWindow{Window: w, Title: title}
}

// TestSilenceWindowAt checks when the silences of a window begin and end, also over both
// changes of the clock, and that each is one silence from its beginning to its end.
func TestSilenceWindowAt(t *testing.T) {
	for _, tt := range []struct{ args, at, from, until string }{
		{"sun 02:00-04:00 UTC", "2026-06-06 12:00", "2026-06-07 02:00", "2026-06-07 04:00"},
		{"sun 02:00-04:00 UTC", "2026-06-07 03:59", "2026-06-07 02:00", "2026-06-07 04:00"},
		{"sun 02:00-04:00 UTC", "2026-06-07 04:00", "2026-06-14 02:00", "2026-06-14 04:00"},
		{"fri 22:00-07:00 UTC", "2026-06-06 01:00", "2026-06-05 22:00", "2026-06-06 07:00"},
		{"00:00-24:00 sat,sun UTC", "2026-06-07 10:00", "2026-06-06 00:00", "2026-06-08 00:00"},
		{"sun 02:00-04:00 Europe/Berlin", "2026-03-28 12:00", "2026-03-29 01:00", "2026-03-29 02:00"},
		{"sun 02:00-03:00 Europe/Berlin", "2026-03-28 12:00", "2026-04-05 00:00", "2026-04-05 01:00"}, // there is no such hour
		{"sun 01:00-04:00 Europe/Berlin", "2026-10-25 02:30", "2026-10-24 23:00", "2026-10-25 03:00"},
		{"sun 02:15-02:45 Europe/Berlin", "2026-10-25 00:50", "2026-10-25 01:15", "2026-10-25 01:45"}, // it is there twice
	} {
		w := silenceWindow(t, tt.args, "")
		x := w.At(parse(t, "UTC", tt.at))
		if x.From.Format("2006-01-02 15:04") != tt.from || x.Until.Format("2006-01-02 15:04") != tt.until {
			t.Errorf("%s at %s: from %s until %s", tt.args, tt.at, x.From, x.Until)
		}
		for at := x.From; at.Before(x.Until); at = at.Add(17 * time.Minute) {
			if o := w.At(at); o != x {
				t.Errorf("%s at %s: %+v, want %+v", tt.args, at, o, x)
			}
		}
		if o := w.At(x.Until); o.ID == x.ID || !o.From.After(x.From) || o.Window != x.Window {
			t.Errorf("%s is followed by %+v", tt.args, o)
		}
	}
}

func TestCheckSilenceWindows(t *testing.T) {
	at := func(args, title, tag string) SilenceWindow {
		w := silenceWindow(t, args, title)
		w.Tag = tag
		return w
	}
	for want, windows := range map[string][]SilenceWindow{
		"":           {at("sun 02:00-04:00 UTC", "", ""), at("00:00-12:00 UTC", "", ""), at("12:00-23:59 UTC", "disk", "")},
		"whole week": {at("00:00-24:00", "", "")},
		"the whole":  {at("00:00-12:00 UTC", "", ""), at("12:00-24:00 UTC", "", "")},
		"cover": {
			at("00:00-12:00 UTC", "", ""), at("12:00-24:00 UTC", "disk", ""),
			at("12:00-12:01 UTC", "Disk is", "x"), at("00:00-24:00 UTC", "disk is", "X"),
		},
		"make one shorter": {at("01:00-13:00 Asia/Kathmandu", "", ""), at("07:00-20:00 UTC", "", "")},
		"two of":           {at("02:00-04:00 UTC", "a", "x"), at("02:00-04:00 mon-sun UTC", "a", "X")},
		"tag: it must":     {at("02:00-04:00 UTC", "", "a b")},
		"title: it is":     {at("02:00-04:00 UTC", strings.Repeat("x", 201), "")},
		"title and reason": {{Window: at("02:00-04:00 UTC", "", "").Window, Reason: "a\nb"}},
	} {
		if err := (&Rules{Windows: windows}).Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestQuietAndSilent checks that quiet and silences do not hold messages forever between them.
func TestQuietAndSilent(t *testing.T) {
	w := silenceWindow(t, "19:00-23:00 UTC", "")
	r := &Rules{Windows: []SilenceWindow{w}, Quiet: []Quiet{{Window: silenceWindow(t, "23:00-19:00 UTC", "").Window}}}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "quiet: the windows cover") {
		t.Error(err)
	}
	r.Windows[0].Title = "disk"
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// TestArrange checks that the record of a key has the next silence of each window, and keeps
// those that it has.
func TestArrange(t *testing.T) {
	now := parse(t, "UTC", "2026-06-07 01:00")
	w := silenceWindow(t, "sun 02:00-04:00 UTC", "")
	w.Tell = true
	s := &KeySilences{All: Silences{{ID: uuid.UUID{1}, From: now, Until: now.Add(48 * time.Hour), Begun: true, Tag: AllTags}}}
	if !s.Arrange(now, []SilenceWindow{w}) || s.Arrange(now, []SilenceWindow{w}) || len(s.All) != 2 || !s.All[1].Planned(now) {
		t.Fatalf("%+v", s.All)
	}
	id := s.All[1].ID
	now = now.Add(90 * time.Minute)
	if x, _ := s.Untold(now); x == nil || !s.Told(now, id, false) {
		t.Errorf("%+v has to be told", x)
	}
	s.CountKept([]uuid.UUID{id}, nil)
	w.Reason = "backups"
	if !s.Arrange(now, []SilenceWindow{w}) || s.All[1].ID != id || !s.All[1].Begun || s.All[1].Count != 1 || s.All[1].Reason != "backups" {
		t.Errorf("%+v", s.All)
	}
	if _, err := s.End(now, id, []SilenceWindow{w}); err != ErrWindowSilence {
		t.Errorf("ended: %v", err)
	}
	if got := s.All.WithWindows(now, nil); len(got) != 1 {
		t.Errorf("without the window: %+v", got)
	}
	if got := s.All.WithWindows(now, []SilenceWindow{w}); len(got) != 2 || got.Match(now, notifier.Incident{}, "x", nil) == nil {
		t.Errorf("with the window: %+v", got)
	}
	removed := KeySilences{All: append(Silences(nil), s.All...)}
	if x, over := func() (*Silence, bool) { removed.Arrange(now, nil); return removed.Untold(now) }(); x == nil || !over || x.ID != id {
		t.Errorf("the end of a window that is gone is not told: %+v", x)
	}
	now = now.Add(2 * time.Hour)
	if !s.Arrange(now, []SilenceWindow{w}) || len(s.All) != 3 || !s.Told(now, id, true) {
		t.Errorf("%+v", s.All)
	}
	listed := s.All.Listed(now, []SilenceWindow{w})
	if len(listed) != 2 || !listed[1].Planned(now) || listed[1].ID == id || !s.Arrange(now, nil) || len(s.All) != 1 {
		t.Errorf("%+v, %+v", listed, s.All)
	}
}
