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
	// Home is where the key is defined, and Key is its name. The rules do not read them.
	Home, Key string

	All Silences

	// Ended is when the last one has ended, until what it has held was looked at.
	Ended time.Time
}

// Errors of changes of silences.
var (
	ErrTooManySilences = errors.New("the key has 200 silences, as many as are allowed; end some of them, or make one that matches more")
	ErrNoSilence       = errors.New("there is no such silence; it has ended, or the ID belongs to another key")
)

// Add adds a silence, or returns [ErrTooManySilences].
func (s *KeySilences) Add(now time.Time, x Silence) error {
	if active, _ := s.All.Active(now); len(active) >= MaxSilences {
		return ErrTooManySilences
	}
	s.All = append(s.All, x)
	return nil
}

// End ends the active silence with an ID before its time, or returns [ErrNoSilence].
func (s *KeySilences) End(now time.Time, id uuid.UUID) (ended Silence, err error) {
	found := s.All.Find(now, id)
	if found == nil {
		return ended, ErrNoSilence
	}
	ended = *found
	s.All = slices.DeleteFunc(s.All, func(x Silence) bool { return x.ID == id })
	s.Ended = now
	return ended, nil
}

// Expire removes the silences whose time is over, and returns them.
func (s *KeySilences) Expire(now time.Time) (ended Silences) {
	if s.All, ended = s.All.Active(now); len(ended) > 0 {
		s.Ended = now
	}
	return ended
}

// LookedAt notes that what silences have held was looked at after Ended was a time. If another
// one has ended since, it has to be looked at once more.
func (s *KeySilences) LookedAt(ended time.Time) {
	if s.Ended.Equal(ended) {
		s.Ended = time.Time{}
	}
}

// CountKept counts a message that the silences with IDs have kept from a destination.
func (s *KeySilences) CountKept(ids []uuid.UUID) {
	for i := range s.All {
		if slices.Contains(ids, s.All[i].ID) {
			s.All[i].Count++
		}
	}
}

// Empty reports whether nothing has to be remembered.
func (s *KeySilences) Empty() bool { return len(s.All) == 0 && s.Ended.IsZero() }

// Due returns when something has to be done.
func (s *KeySilences) Due(now time.Time) time.Time {
	if !s.Ended.IsZero() {
		return now
	}
	return s.All.Next()
}

func (s *KeySilences) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.Home)
	wire.Text(c, 2, &s.Key)
	wire.Time(c, 3, &s.Ended)
	wire.Records(c, 4, &s.All, (*Silence).fields)
}

// Encode returns the silences as bytes.
func (s *KeySilences) Encode() []byte { return wire.Append(nil, s, (*KeySilences).fields) }

// DecodeKeySilences is the inverse of Encode.
func DecodeKeySilences(b []byte) (*KeySilences, error) {
	s := new(KeySilences)
	return s, wire.Decode(b, s, (*KeySilences).fields)
}
