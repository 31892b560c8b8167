package rules

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// KeySilences are the silences of a key, which are one record. The zero value has none.
type KeySilences struct {
	// Home is where the key is defined, Key is its name, and Site is the ID of a site that
	// has it. The rules do not read them.
	Home, Key, Site string

	All Silences

	// Ended is when the last silence ended; zero after the items that it held were looked at.
	Ended time.Time
}

// Errors of changes of silences.
var (
	ErrTooManySilences = errors.New("the key has 200 silences, as many as are allowed; end some of them, or make one that matches more")
	ErrNoSilence       = errors.New("there is no such silence; it has ended, or the ID belongs to another key")
	ErrWindowSilence   = errors.New("this silence is a line of the key in the configuration; remove the line to end it")
	ErrWindowLonger    = errors.New("this silence is a line of the key in the configuration; change the line to make it longer")
	ErrNotLonger       = errors.New("the silence lasts until then or longer already; write a later time, or a longer duration")
	ErrTooLong         = errors.New("the silence would last for more than 30 days from now; write an earlier time")
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

// End ends the silence with an ID early, even before it has begun. It returns [ErrNoSilence] if
// there is none, and [ErrWindowSilence] if it belongs to one of the windows of the key.
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

// Extend lets the silence with an ID last until a later time. It returns an error if there is none,
// if it is one of the windows of the key, or if the time is too early or too late.
func (s *KeySilences) Extend(now time.Time, id uuid.UUID, until time.Time, windows []SilenceWindow) (extended Silence, err error) {
	found := s.All.Listed(now, windows).ByID(id)
	switch {
	case found == nil:
		return extended, ErrNoSilence
	case found.Window != (uuid.UUID{}):
		return extended, ErrWindowLonger
	case !until.After(found.Until):
		return extended, ErrNotLonger
	case until.Sub(now) > MaxSilenceTime:
		return extended, ErrTooLong
	}
	x := s.All.ByID(id)
	x.Until, x.For = until, until.Sub(x.Begins())
	return *x, nil
}

// Resolve ends the silences that last until an incident is resolved, because it is. It reports
// whether there are some.
func (s *KeySilences) Resolve(now time.Time, incident notifier.Incident) (ended bool) {
	for i := range s.All {
		x := &s.All[i]
		if x.UntilResolved && x.active(now) && x.isAbout(incident) {
			x.Until, ended = now, true // the end is noted and told when it is due
		}
	}
	return ended
}

// remove removes the silence with an ID.
func (s *KeySilences) remove(id uuid.UUID) {
	s.All = slices.DeleteFunc(s.All, func(x Silence) bool { return x.ID == id })
}

// Expire removes the silences that are over, and returns them. It leaves silences whose end has to
// be told.
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

// Begin notes that silences have begun, and returns them. It leaves silences whose beginning has to
// be told.
func (s *KeySilences) Begin(now time.Time) (begun Silences) {
	for i := range s.All {
		if x := &s.All[i]; !x.Tell && x.begins(now) {
			x.Begun = true
			begun = append(begun, *x)
		}
	}
	return begun
}

// TellNobody changes the silences so that they are not told, because the key is gone.
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

// Told notes that the beginning or the end of a silence was told. It reports false if it was told
// before.
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

// LookedAt notes that held items were looked at when Ended was ended. If another silence has ended
// since, they have to be looked at again.
func (s *KeySilences) LookedAt(ended time.Time) {
	if s.Ended.Equal(ended) {
		s.Ended = time.Time{}
	}
}

// CountKept counts a message that silences have kept from a destination. ids are among the IDs of
// holding.
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

// Empty reports whether the record can be removed.
func (s *KeySilences) Empty() bool { return len(s.All) == 0 && s.Ended.IsZero() }

// Due returns when the silences have to be looked at.
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
