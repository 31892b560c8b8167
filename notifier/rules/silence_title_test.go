package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestSilenceTitle checks which titles a text matches, with asterisks and without.
func TestSilenceTitle(t *testing.T) {
	for _, tt := range []struct {
		text, title string
		want        bool
	}{
		{"disk", "Disk full on db1", true},
		{"disk", "OK: disk full", false},
		{"", "anything", true},
		{"*", "", true},
		{"*", "anything", true},
		{"disk*", "Disk full", true},
		{"disk**", "disk", true},
		{"*disk", "OK: Disk full", true},
		{"*disk*", "OK: Disk full", true},
		{"*disk", "dis", false},
		{"disk * full", "Disk of db1 full again", true},
		{"disk * full", "Disk of db1 is fine", false},
		{"*a*b*c", "xxAxxBxxC", true},
		{"*a*b*c", "cba", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*ü", "DISK Ü", true},
		{"[FIRING:1] disk (db-1) 100%+", "[FIRING:1] Disk (db-1) 100%+", true},
		{"C:\\data is full?", "C:\\data is full? yes", true},
		{"[web-01] down | api", "[WEB-01] down | API", true},
	} {
		s := Silence{Title: tt.text, Until: time.Unix(3600, 0)}
		if err := s.Normalize(time.Unix(0, 0)); (err != nil) != (tt.text == "") {
			t.Errorf("%q: %v", tt.text, err)
		}
		if got := s.Matches(notifier.Incident{}, tt.title, nil); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.text, tt.title, got)
		}
	}
}

// TestSilencePatterns checks that a regular expression as title, and a part of a tag, are refused
// with what to write.
func TestSilencePatterns(t *testing.T) {
	for _, title := range []string{
		"^disk", "disk$", "disk.*", ".*disk", "disk.+full", "(disk|cpu) full", "disk|cpu", "[0-9]", "db[0-9]+", "web[a-zA-Z]", "[^0-9]",
		`\d`, `db\d+`, `\w+ full`, `disk\.`, `\(disk\)`, "(?i)disk", "a{2}", "a{2,3}", "(ab)+", "(ab)?", `\bdisk\b`,
	} {
		s := Silence{Title: title, Until: time.Unix(3600, 0)}
		if err := s.Normalize(time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "write how the title begins, with *") {
			t.Errorf("%s: %v", title, err)
		}
		w := silenceWindow(t, "sun 02:00-04:00 UTC", title)
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), "write how the title begins, with *") {
			t.Errorf("window %s: %v", title, err)
		}
	}
	for tag, want := range map[string]string{"*": AllTags, "phone": "phone", "on*": "", "*call": "", "a.*": ""} {
		s := Silence{Tag: tag, Until: time.Unix(3600, 0)}
		err := s.Normalize(time.Unix(0, 0))
		if want != "" && (err != nil || s.Tag != want) || want == "" && (err == nil || !strings.Contains(err.Error(), "one whole tag")) {
			t.Errorf("tag %s: %v, %s", tag, err, s.Tag)
		}
	}
}

// TestSilenceUntilResolved checks that the resolution of its incident ends a silence, and no other.
func TestSilenceUntilResolved(t *testing.T) {
	now := time.Unix(1000, 0)
	about := notifier.Incident{Name: "db1", ID: "derived"}
	for name, tt := range map[string]struct {
		of       notifier.Incident
		resolved bool
		ends     bool
	}{
		"its incident":        {about, true, true},
		"its incident, by ID": {notifier.Incident{Name: "other", ID: "db1"}, true, true},
		"another incident":    {notifier.Incident{Name: "db2", ID: "x"}, true, false},
		"no incident":         {notifier.Incident{}, true, false},
		"for a time":          {about, false, false},
	} {
		s := KeySilences{All: Silences{{
			ID: uuid.UUID{1}, From: now, Until: now.Add(time.Hour), Incident: "db1", Title: "disk", Begun: true, UntilResolved: tt.resolved,
		}}}
		s.Resolve(now.Add(time.Minute), tt.of)
		if ended := s.Expire(now.Add(time.Minute)); len(ended) == 1 != tt.ends {
			t.Errorf("%s: %+v has ended", name, ended)
		}
	}
	s := Silence{Title: "disk", UntilResolved: true, Until: now.Add(time.Hour)}
	if err := s.Normalize(now); err == nil || !strings.Contains(err.Error(), "name the incident") {
		t.Errorf("without an incident: %v", err)
	}
}

// TestExtendSilence checks that a silence lasts longer, and which ones do not.
func TestExtendSilence(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	window := silenceWindow(t, "00:00-12:00 UTC", "")
	s := KeySilences{All: Silences{{ID: uuid.UUID{1}, From: now, Until: now.Add(time.Hour), For: time.Hour, Tag: AllTags, Begun: true}}}
	s.Renew(now, []SilenceWindow{window})
	for _, tt := range []struct {
		id    uuid.UUID
		until time.Duration
		want  error
	}{
		{uuid.UUID{1}, 2 * time.Hour, nil},
		{uuid.UUID{1}, 90 * time.Minute, ErrNotLonger},
		{uuid.UUID{1}, MaxSilenceTime + time.Minute, ErrTooLong},
		{uuid.UUID{2}, 2 * time.Hour, ErrNoSilence},
		{window.At(now).ID, 48 * time.Hour, ErrWindowLonger},
	} {
		if _, err := s.Extend(now, tt.id, now.Add(tt.until), []SilenceWindow{window}); err != tt.want {
			t.Errorf("%s by %s: %v, want %v", tt.id, tt.until, err, tt.want)
		}
	}
	if x := s.All.ByID(uuid.UUID{1}); !x.Until.Equal(now.Add(2*time.Hour)) || x.For != 2*time.Hour || !x.active(now.Add(100*time.Minute)) {
		t.Errorf("%+v", x)
	}
}
