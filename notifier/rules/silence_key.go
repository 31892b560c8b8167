package rules

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// KeySilences are the silences of a key, as their record has them. The zero value is none.
type KeySilences struct {
	// Home is where the key is defined, Key is its name, and Site is the ID of a site that
	// has it. The rules do not read them.
	Home, Key, Site string

	All Silences

	// Ended is when the last one has ended, until what it has held was looked at.
	Ended time.Time
}

// Errors of changes of silences.
var (
	ErrTooManySilences = errors.New("the key has 200 silences, as many as are allowed; end some of them, or make one that matches more")
	ErrNoSilence       = errors.New("there is no such silence; it has ended, or the ID belongs to another key")
	ErrWindowSilence   = errors.New("this silence is a line of the key in the configuration; remove the line to end it")
)

// Add adds a silence, or returns [ErrTooManySilences].
func (s *KeySilences) Add(now time.Time, x Silence) error {
	n := 0
	left, _ := s.All.Left(now)
	for i := range left {
		if left[i].Window == (uuid.UUID{}) {
			n++
		}
	}
	if n >= MaxSilences {
		return ErrTooManySilences
	}
	x.Begun = !x.Tell && x.active(now)
	s.All = append(s.All, x)
	return nil
}

// End ends the silence with an ID before its time, also if it has not begun. It returns
// [ErrNoSilence] if there is none, and [ErrWindowSilence] if it belongs to one of the windows
// of the key.
func (s *KeySilences) End(now time.Time, id uuid.UUID, windows []SilenceWindow) (ended Silence, err error) {
	found := s.All.Listed(now, windows).ByID(id)
	if found == nil {
		return ended, ErrNoSilence
	}
	if found.Window != (uuid.UUID{}) {
		return ended, ErrWindowSilence
	}
	ended = *found
	switch {
	case ended.Tell && ended.Begun: // the end is told when it is due
		s.All.ByID(id).Until = now
	case ended.Planned(now):
		s.remove(id)
	default:
		s.remove(id)
		s.Ended = now
	}
	return ended, nil
}

// remove removes the silence with an ID.
func (s *KeySilences) remove(id uuid.UUID) {
	s.All = slices.DeleteFunc(s.All, func(x Silence) bool { return x.ID == id })
}

// Expire removes the silences whose time is over, and returns them. It leaves those whose end
// has to be told.
func (s *KeySilences) Expire(now time.Time) (ended Silences) {
	_, over := s.All.Left(now)
	for i := range over {
		if x := &over[i]; !x.Tell || !x.Begun {
			s.remove(x.ID)
			s.Ended = now
			ended = append(ended, *x)
		}
	}
	return ended
}

// IsAhead reports whether one of the silences was made when the clock was ahead, and has been
// set back since.
func (s *KeySilences) IsAhead(now time.Time) bool {
	return slices.ContainsFunc(s.All, func(x Silence) bool { return x.isAhead(now) })
}

// MoveBack corrects the times of the silences that were made when the clock was ahead: what
// began then begins now, and lasts as long.
func (s *KeySilences) MoveBack(now time.Time) {
	for i := range s.All {
		if x := &s.All[i]; x.isAhead(now) {
			x.moveBack(now)
		}
	}
}

// Begin notes that silences have begun, and returns them. It leaves those whose beginning has
// to be told.
func (s *KeySilences) Begin(now time.Time) (begun Silences) {
	for i := range s.All {
		if x := &s.All[i]; !x.Tell && x.begins(now) {
			x.Begun = true
			begun = append(begun, *x)
		}
	}
	return begun
}

// TellNobody changes the silences so that none of them is told, because the key is gone.
func (s *KeySilences) TellNobody() {
	for i := range s.All {
		s.All[i].Tell = false
	}
}

// Untold returns a silence whose beginning, or whose end, has to be told by a message, or nil.
func (s *KeySilences) Untold(now time.Time) (x *Silence, ended bool) {
	for i := range s.All {
		x := &s.All[i]
		over := x.Begun && !x.active(now) && !x.Planned(now)
		if x.Tell && (over || x.begins(now)) {
			return x, over
		}
	}
	return nil, false
}

// Told notes that the beginning or the end of the silence with an ID was told. It reports
// false if that had been told before.
func (s *KeySilences) Told(now time.Time, id uuid.UUID, end bool) (changed bool) {
	x := s.All.ByID(id)
	switch {
	case x == nil, x.Begun != end:
		return false
	case end:
		s.remove(id)
		s.Ended = now
	default:
		x.Begun = true
	}
	return true
}

// LookedAt notes that what silences have held was looked at after Ended was a time. If another
// one has ended since, it has to be looked at once more.
func (s *KeySilences) LookedAt(ended time.Time) {
	if s.Ended.Equal(ended) {
		s.Ended = time.Time{}
	}
}

// CountKept counts a message that the silences with IDs, which are among those that hold,
// have kept from a destination.
func (s *KeySilences) CountKept(ids []uuid.UUID, holding Silences) {
	for _, id := range ids {
		x := s.All.ByID(id)
		if x == nil {
			found := holding.ByID(id)
			if found == nil {
				continue
			}
			s.All = append(s.All, *found)
			x = &s.All[len(s.All)-1]
		}
		x.Count++
	}
}

// Empty reports whether nothing has to be remembered.
func (s *KeySilences) Empty() bool { return len(s.All) == 0 && s.Ended.IsZero() }

// Due returns when something has to be done.
func (s *KeySilences) Due(now time.Time) time.Time {
	if !s.Ended.IsZero() {
		return now
	}
	return s.All.next()
}

// Fields names the fields of a record.
func (s *KeySilences) Fields(c *wire.Codec) {
	wire.Text(c, 1, &s.Home)
	wire.Text(c, 2, &s.Key)
	wire.Time(c, 3, &s.Ended)
	wire.Records(c, 4, &s.All, (*Silence).fields)
	wire.Text(c, 5, &s.Site)
}
