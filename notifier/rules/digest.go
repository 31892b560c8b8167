package rules

import (
	"errors"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Digest collects messages and sends them as one: some time after the first of them,
// or at a moment of the week. With a moment, failures pass by default.
type Digest struct {
	Every  time.Duration // after the first message; 0 for a moment
	Moment *Moment
	Scope
}

// ParseDigest parses the arguments of digest that are no duration: a time of day, days
// and a zone.
func ParseDigest(args []string) (*Moment, error) {
	words, err := ParseWords(args)
	if err != nil {
		return nil, err
	}
	if len(words.Times) != 1 {
		return nil, errors.New("it needs one time, such as 30s or mon 08:00")
	}
	at, err := parseTimeOfDay(words.Times[0])
	if err == nil && at == dayMinutes {
		err = errors.New("a digest at 24:00 is one at 00:00 of the next day; write that")
	}
	return &Moment{at, words.Days, words.Zone}, err
}

// Check returns an error if the rule is malformed.
func (d *Digest) Check() error {
	if (d.Every != 0) == (d.Moment != nil) {
		return errors.New("it needs either a duration, as in digest 30s, or a time of day, as in digest mon 08:00")
	}
	if d.Every != 0 {
		if err := checkTime(d.Every); err != nil {
			return err
		}
	}
	return d.Scope.Check()
}

// applies reports whether the digest collects an item.
func (d *Digest) applies(x *Item) bool {
	if d == nil {
		return false
	}
	var defaults []notifier.Type
	if d.Moment != nil {
		defaults = notFailures
	}
	return d.covers(x.Type, defaults) && (x.Passed == "" || d.covers(x.Passed, defaults))
}

// until returns when a digest that begins now is sent.
func (d *Digest) until(now time.Time) time.Time {
	if d.Moment != nil {
		return d.Moment.Next(now)
	}
	return now.Add(d.Every)
}
