package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SilenceWindow is a silence that recurs at wall-clock times. Each recurrence is a [Silence].
type SilenceWindow struct {
	Window
	Tag    string // of destinations; "" for every one
	Title  string // what the title begins with, in any case, with * for any text; "" for every message
	Reason string
	Tell   bool

	id uuid.UUID // of a window that was checked
}

// Check returns an error if the window is malformed.
func (w *SilenceWindow) Check() error {
	if err := cmp.Or(checkSilenceTag(w.Tag, errWindowTag), checkTitle(&w.Title)); err != nil {
		return err
	}
	w.id = w.ID()
	return checkSilenceTexts(w.Title, w.Reason)
}

// ID returns the ID of the window. It follows from its times and from what it matches.
func (w *SilenceWindow) ID() uuid.UUID {
	if w.id != (uuid.UUID{}) {
		return w.id
	}
	days := w.Days
	if days == (Days{}) {
		days = Days{true, true, true, true, true, true, true}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d-%d %v %s\x00%s\x00%s", w.Start, w.End, days, w.Zone.Location(), strings.ToLower(w.Tag), w.Title))
	return uuid.UUID(sum[:16])
}

// At returns the window's silence that holds at t or, if none does, the next one.
func (w *SilenceWindow) At(t time.Time) Silence {
	from := w.next
	if w.Has(t) {
		from = w.begun
	}
	begin := from(t).UTC()
	id := w.ID()
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(id[:]), uint64(begin.Unix()))) //nolint:gosec // it is only hashed
	return Silence{
		ID: uuid.UUID(sum[:16]), Made: begin, From: begin, Until: w.After(begin).UTC(),
		Tag: w.Tag, Title: w.Title, Reason: w.Reason, Tell: w.Tell, Window: id,
	}
}

// Errors of windows of silences.
var (
	errAlwaysSilent = errors.New("the windows cover the whole week, so that what they " +
		"match would never be told; make one shorter, or remove the URLs from the key")
	errSameSilence = errors.New("two of the silences have the same times, tag and title; remove one")
)

// checkSilenceWindows returns an error if windows are the same, or cover the whole week for
// something.
func checkSilenceWindows(windows []SilenceWindow) error {
	ids := map[uuid.UUID]bool{}
	for i := range windows {
		if err := windows[i].Check(); err != nil {
			return err
		}
		id := windows[i].ID()
		if ids[id] {
			return errSameSilence
		}
		ids[id] = true
	}
	for i := range windows {
		var same []Window
		for k := range windows {
			if windows[k].includes(&windows[i]) {
				same = append(same, windows[k].Window)
			}
		}
		if coverWeek(same) {
			return errAlwaysSilent
		}
	}
	return nil
}

// includes reports whether the window matches everything that o matches.
func (w *SilenceWindow) includes(o *SilenceWindow) bool {
	return (w.Tag == "" || strings.EqualFold(w.Tag, o.Tag)) && titleMatches(w.Title, o.Title)
}

// WithWindows returns the silences, with a silence for each window that holds at now. It leaves out
// silences of windows that the configuration no longer has.
func (s Silences) WithWindows(now time.Time, windows []SilenceWindow) Silences {
	out := s.known(windows)
	for i := range windows {
		if w := &windows[i]; w.Has(now) && !slices.ContainsFunc(out, func(x Silence) bool { return x.Window == w.ID() && x.active(now) }) {
			out = append(slices.Clip(out), w.At(now))
		}
	}
	return out
}

// Near returns the silences that hold at now, or will in a minute, including silences of windows.
func (s Silences) Near(now time.Time, windows []SilenceWindow) (near Silences) {
	all := s.WithWindows(now, windows).WithWindows(now.Add(silenceLead), windows)
	for i := range all {
		if all[i].near(now) {
			near = append(near, all[i])
		}
	}
	return near
}

// NextNear reports whether a silence holds at now, or will in a minute, and returns when the next
// one of the others will.
func (s Silences) NextNear(now time.Time) (near bool, next time.Time) {
	for i := range s {
		x := &s[i]
		at := x.From.Add(-silenceLead)
		switch {
		case x.near(now):
			near = true
		case at.After(now) && (next.IsZero() || at.Before(next)):
			next = at
		}
	}
	return near, next
}

// Listed returns the silences that hold at now, and then the planned ones in the order in which
// they begin. For each window it returns the silence that holds or, if none does, the next one.
func (s Silences) Listed(now time.Time, windows []SilenceWindow) Silences {
	out, _ := s.known(windows).Left(now)
	for i := range windows {
		if x := windows[i].At(now); out.ByID(x.ID) == nil {
			out = append(out, x)
		}
	}
	begins := func(x Silence) (at time.Time) {
		if x.Planned(now) {
			at = x.From
		}
		return at
	}
	slices.SortStableFunc(out, func(a, b Silence) int { return begins(a).Compare(begins(b)) })
	return out
}

// known returns the silences without the silences of windows that are not among windows.
func (s Silences) known(windows []SilenceWindow) Silences {
	made := func(x Silence) bool { return x.Window == uuid.UUID{} }
	if !slices.ContainsFunc(s, func(x Silence) bool { return !made(x) }) {
		return s
	}
	return slices.DeleteFunc(slices.Clone(s), func(x Silence) bool {
		return !made(x) && !slices.ContainsFunc(windows, func(w SilenceWindow) bool { return w.ID() == x.Window })
	})
}

// ByID returns the silence with an ID, or nil.
func (s Silences) ByID(id uuid.UUID) *Silence {
	if i := slices.IndexFunc(s, func(x Silence) bool { return x.ID == id }); i >= 0 {
		return &s[i]
	}
	return nil
}

// Arrange is Renew for the windows of a new configuration. It ends silences of other windows.
func (s *KeySilences) Arrange(now time.Time, windows []SilenceWindow) (changed bool) {
	gone := func(x *Silence) bool {
		return x.Window != uuid.UUID{} && !slices.ContainsFunc(windows, func(w SilenceWindow) bool { return w.ID() == x.Window })
	}
	for i := range s.All {
		if x := &s.All[i]; gone(x) && x.Begun && x.active(now) {
			x.Until, changed = now, true // the end is noted and told when it is due
		}
	}
	before := len(s.All)
	s.All = slices.DeleteFunc(s.All, func(x Silence) bool { return gone(&x) && !x.Begun })
	return s.Renew(now, windows) || changed || len(s.All) != before
}

// Renew adds a silence of each window to the record: the one that holds at a time, or the next
// one. It reports whether something has changed.
func (s *KeySilences) Renew(now time.Time, windows []SilenceWindow) (changed bool) {
	for i := range windows {
		changed = s.renew(now, &windows[i]) || changed
	}
	return changed
}

// renew is Renew for one window.
func (s *KeySilences) renew(now time.Time, w *SilenceWindow) (changed bool) {
	next := w.At(now)
	if x := s.All.ByID(next.ID); x != nil {
		changed = x.Reason != next.Reason || x.Tell != next.Tell || !x.Until.Equal(next.Until)
		x.Reason, x.Tell, x.Until = next.Reason, next.Tell, next.Until
		return changed
	}
	s.All = slices.DeleteFunc(s.All, func(x Silence) bool { return x.Window == next.Window && x.Planned(now) })
	s.All = append(s.All, next)
	return true
}
