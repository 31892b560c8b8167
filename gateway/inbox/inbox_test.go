package inbox

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestCursor checks that cursors follow each other, also when the clock is set back, and
// that their texts sort like them and are no other kind of since.
func TestCursor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC)
	a := Cursor(0).next(now)
	b := a.next(now)
	c := b.next(now.Add(-time.Hour))
	d := c.next(now.Add(time.Second))
	for i, pair := range [][2]Cursor{{a, b}, {b, c}, {c, d}} {
		if pair[0] >= pair[1] || pair[0].String() >= pair[1].String() {
			t.Errorf("%d: %s, then %s", i, pair[0], pair[1])
		}
		if got, ok := parseCursor(pair[1].String()); !ok || got != pair[1] {
			t.Errorf("%s is read as %s", pair[1], got)
		}
	}
	for _, text := range []string{"", "m", "m0", "hwQ2YpKdmgzz", "10m", "M0hofnw3czzx", "m0hofnw3czz!", "m-0hofnw3czz"} {
		if c, ok := parseCursor(text); ok {
			t.Errorf("%q is the cursor %d", text, c)
		}
	}
}

// TestParseSince checks where an inbox begins. A day begins in the zone of the server, as that of incidents.
func TestParseSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]Since{
		"all": {}, "none": {None: true}, "latest": {Latest: true}, cursorAt(now).String(): {After: cursorAt(now)},
		"1h": {After: cursorAt(now.Add(-time.Hour)) - 1}, "1782892800": {After: cursorAt(time.Unix(1782892800, 0)) - 1},
		"2026-07-01T09:00:00+01:00": {After: cursorAt(now) - 1}, "0": {},
		"2026-07-01": {After: cursorAt(time.Date(2026, 6, 30, 22, 0, 0, 0, time.UTC)) - 1},
	} {
		if got, err := ParseSince(text, now, time.ParseDuration); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-1h", "-5", "99999999999999999999", "2026-07"} {
		if got, err := ParseSince(text, now, time.ParseDuration); !errors.Is(err, errSince) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestStored checks that a message is read as it was stored, and that texts are cut.
func TestStored(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1782892800123456)
	m := newMessage(&notifier.Message{
		Title: "T", Body: strings.Repeat("é", maxBody), Type: notifier.Failure, Format: notifier.Markdown, Time: now, Foreign: true,
		Incident:    notifier.Incident{Name: "disk"},
		Attachments: []*notifier.Attachment{{Name: "a.txt", ContentType: "text/plain", Size: 5}},
	}, "0190", "grafana", now.Add(time.Hour))
	m.Cursor = cursorAt(now)
	if len(m.Body) > maxBody+len("…") || !m.Cut || m.Title != "T" || m.Size() < len(m.Body) {
		t.Errorf("%d bytes, %v, %q", len(m.Body), m.Cut, m.Title)
	}
	_, got, ok := decodeMessage(encodeMessage("p", m))
	if !ok || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v", got, ok)
	}
	if until := m.until(time.Minute); !until.Equal(now.Add(time.Minute)) {
		t.Errorf("after inbox was shortened, it can be read until %s", until)
	}
	if until := m.until(24 * time.Hour); !until.Equal(m.Expires) {
		t.Errorf("after inbox was made longer, it can be read until %s", until)
	}
}
