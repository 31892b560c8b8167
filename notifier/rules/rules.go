// Package rules has the rules of keys over time: which repetitions of a message are suppressed, and
// which messages are held and sent later as one. It knows no clock and no store. Time is a
// parameter, and the caller stores the values that the functions change: a [Lane] has the items
// held for a destination of a key; a [Subject] is what a destination knows of an incident or of
// equal messages; an [Incident] has its steps; [KeySilences] are the silences of a key; and a
// [Beat] is expected. So tests run every rule through weeks in milliseconds.
//
// [Rules.Arrive] decides about a message that comes in, and [Rules.Release] about held messages
// when a time has come. [Escalate.Arrive] and [Escalate.Advance] do the same for the steps of
// incidents.
//
// The order of the rules is silences, dedupe, hold, escalate, quiet, digest, rate. A message that a
// rule releases still has to pass the silences and the later rules. A message that escalates skips
// the rules after escalate.
package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Rules are the rules of a key or of one destination.
type Rules struct {
	Dedupe   *Dedupe
	Hold     *Lasting
	Escalate *Escalate
	Quiet    []Quiet
	Digest   *Digest
	Rate     []Rate

	// Windows are the silences of the configuration. They hold for each destination that they
	// match, even if no other rule concerns it.
	Windows []SilenceWindow

	// Silences are the silences that hold for the destination. They come and go, so that they are
	// set for each message (see [Rules.WithSilences]).
	Silences Silences
}

// Empty reports whether there is no rule.
func (r *Rules) Empty() bool {
	return r == nil || r.Dedupe == nil && r.Hold == nil && r.Escalate == nil && len(r.Quiet) == 0 &&
		r.Digest == nil && len(r.Rate) == 0 && len(r.Windows) == 0 && len(r.Silences) == 0
}

// SilenceWindows returns the windows of silences. r may be nil.
func (r *Rules) SilenceWindows() []SilenceWindow {
	if r == nil {
		return nil
	}
	return r.Windows
}

// Holds reports whether a rule can hold messages.
func (r *Rules) Holds() bool {
	return len(r.Quiet)+len(r.Rate)+len(r.Silences) > 0 || r.Hold != nil || r.Digest != nil
}

// For returns the rules that concern a destination with tags, without windows of silences, or
// nil.
func (r *Rules) For(tags []string) *Rules {
	if r.Empty() {
		return nil
	}
	out := new(Rules)
	if r.Dedupe != nil && r.Dedupe.concerns(tags) {
		out.Dedupe = r.Dedupe
	}
	if r.Hold != nil && r.Hold.concerns(tags) {
		out.Hold = r.Hold
	}
	if r.Escalate != nil && r.Escalate.concerns(tags) {
		out.Escalate = r.Escalate
	}
	for _, q := range r.Quiet {
		if q.concerns(tags) {
			out.Quiet = append(out.Quiet, q)
		}
	}
	if r.Digest != nil && r.Digest.concerns(tags) {
		out.Digest = r.Digest
	}
	for _, x := range r.Rate {
		if x.concerns(tags) {
			out.Rate = append(out.Rate, x)
		}
	}
	if out.Empty() {
		return nil
	}
	return out
}

// Passing returns the rules for a message that escalates: nothing holds it but hold.
func (r *Rules) Passing() *Rules {
	return &Rules{Dedupe: r.Dedupe, Hold: r.Hold, Escalate: r.Escalate, Silences: r.Silences}
}

// Scope limits a rule to some messages and destinations.
type Scope struct {
	Types []notifier.Type // of messages; empty for the rule's default
	Tag   string          // of destinations; "" for all
}

// concerns reports whether the rule holds for a destination with tags, which may
// have numbers.
func (s *Scope) concerns(tags []string) bool {
	return s.Tag == "" || slices.ContainsFunc(tags, func(tag string) bool {
		_, name := notifier.SplitTag(tag)
		return strings.EqualFold(name, s.Tag)
	})
}

// covers reports whether the rule holds for messages of type t. defaults are the
// types if the scope has none; nil for all.
func (s *Scope) covers(t notifier.Type, defaults []notifier.Type) bool {
	types := s.Types
	if len(types) == 0 {
		types = defaults
	}
	return types == nil || slices.Contains(types, t)
}

// notFailures are the types that rules with windows hold by default.
var notFailures = []notifier.Type{notifier.Info, notifier.Success, notifier.Warning}

// Types are all types, in the order of their importance.
var Types = []notifier.Type{notifier.Info, notifier.Success, notifier.Warning, notifier.Failure}

// Check returns an error if the scope is malformed.
func (s *Scope) Check() error {
	for i, t := range s.Types {
		if !slices.Contains(Types, t) {
			return fmt.Errorf("types: %q is no type; write info, success, warning or failure", string(t))
		}
		if slices.Contains(s.Types[:i], t) {
			return fmt.Errorf("types: %s occurs twice; remove one", t)
		}
	}
	if s.Tag != "" && !notifier.ValidTag(s.Tag) {
		return errors.New("tag: it must be a tag of URLs: a letter or digit followed by letters, digits, _ and -")
	}
	return nil
}

// Check returns an error if a rule is malformed or can have no effect.
func (r *Rules) Check() error {
	if err := checkSilenceWindows(r.Windows); err != nil {
		return fmt.Errorf("silence: %w", err)
	}
	if r.Dedupe != nil {
		if err := r.Dedupe.Check(); err != nil {
			return fmt.Errorf("dedupe: %w", err)
		}
	}
	if r.Hold != nil {
		if err := r.Hold.Check(); err != nil {
			return fmt.Errorf("hold: %w", err)
		}
	}
	if r.Escalate != nil {
		if err := r.Escalate.Check(); err != nil {
			return fmt.Errorf("escalate: %w", err)
		}
	}
	for i := range r.Quiet {
		if err := r.Quiet[i].Check(); err != nil {
			return fmt.Errorf("quiet: %w", err)
		}
	}
	if err := checkQuiet(r.Quiet, r.Windows); err != nil {
		return fmt.Errorf("quiet: %w", err)
	}
	if r.Digest != nil {
		if err := r.Digest.Check(); err != nil {
			return fmt.Errorf("digest: %w", err)
		}
	}
	for i := range r.Rate {
		if err := r.Rate[i].Check(); err != nil {
			return fmt.Errorf("rate: %w", err)
		}
	}
	return nil
}

// The bounds of durations.
const (
	minTime = time.Second
	maxTime = 30 * 24 * time.Hour
)

func checkTime(d time.Duration) error {
	if d < minTime || d > maxTime {
		return errors.New("the time must be from 1s to 30d")
	}
	return nil
}

// within reports whether less than d has passed from at to now. A time that is further in the
// future was written before the clock was set back, and does not count.
func within(at, now time.Time, d time.Duration) bool {
	passed := now.Sub(at)
	return -d < passed && passed < d
}
