package device

import (
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// When a key is told that a device does not answer.
const (
	maxMissing = 3                   // receipts in a row
	unseenTime = 14 * 24 * time.Hour // in which something was sent
)

// maxStateRest is the approximate maximum size of a stored state without its names, in bytes.
const maxStateRest = 250

// State is what is known of a device. It changes with each message. A State without an ID is empty.
type State struct {
	ID, Name string
	site.Place

	Created time.Time
	Sent    time.Time // the last push that a push service has taken; zero for none
	Seen    time.Time // the last receipt; zero for none
	Missing int       // receipts in a row
	Told    bool      // the key was told that the device does not answer

	Refused     string    // why its push service has refused the last push; "" if it has not
	RefusedTold time.Time // when the key was told that last; zero for never
}

// of sets the device and the key of the state.
func (s *State) of(d *Device, key site.Place) {
	s.ID, s.Name, s.Place, s.Created = d.ID, d.Name, key, d.Created
}

// pushed notes that a push service has taken a message for a device of a key.
func (s *State) pushed(d *Device, key site.Place, now time.Time) {
	s.of(d, key)
	s.Sent, s.Refused = now, ""
}

// refusedEvery is how often a key is told that a push service refuses the messages for one
// device. A push service that takes every other push must not cause a message for each.
const refusedEvery = 24 * time.Hour

// refuse notes that a push service refuses a message for a device of a key, and reports
// whether the key has to be told.
func (s *State) refuse(d *Device, key site.Place, why string, now time.Time) (tell bool) {
	s.of(d, key)
	s.Refused = why
	if tell = s.RefusedTold.IsZero() || !s.RefusedTold.Add(refusedEvery).After(now); tell {
		s.RefusedTold = now
	}
	return tell
}

// confirmed notes that a device of a key has confirmed a message.
func (s *State) confirmed(d *Device, key site.Place, now time.Time) {
	s.of(d, key)
	s.Seen, s.Missing, s.Told = now, 0, false
}

// last returns when the device was seen last, or when it subscribed.
func (s *State) last() time.Time {
	if s.Seen.After(s.Created) {
		return s.Seen
	}
	return s.Created
}

// silent reports whether the key has to be told that the device does not answer.
func (s *State) silent(now time.Time) bool {
	return !s.Told && (s.Missing >= maxMissing || s.Sent.After(s.last()) && !s.last().Add(unseenTime).After(now))
}

// tell reports whether the key has to be told, and notes that it is.
func (s *State) tell(now time.Time) bool {
	silent := s.silent(now)
	s.Told = s.Told || silent
	return silent
}

// due returns when the state has to be looked at again; zero for never.
func (s *State) due(now time.Time) time.Time {
	switch {
	case s.Told:
	case s.Missing >= maxMissing:
		return now
	case s.Sent.After(s.last()):
		return s.last().Add(unseenTime)
	}
	return time.Time{}
}

// Problem says why the device seems not to answer; "" if it answers.
func (s *State) Problem(now time.Time) string {
	if s.Refused != "" {
		return "It has not got the last message: " + s.Refused + "."
	}
	if s.Told || s.silent(now) {
		return s.noAnswer("").Body
	}
	return ""
}

// noAnswer returns the message to a key whose device does not answer. name is the name of
// the device now.
func (s *State) noAnswer(name string) *notifier.Message {
	body := fmt.Sprintf("It has confirmed none of the last %d messages.", s.Missing)
	if s.Missing < maxMissing {
		body = fmt.Sprintf("It has confirmed no message since %s, and there were some.", s.last().UTC().Format("2 January 15:04 UTC"))
	}
	return &notifier.Message{
		Title: "No answer from " + name, Type: notifier.Warning,
		Body: body + " It may be off, or does not show notifications any more. Open the page of the key on it, or revoke it.",
	}
}

// notTaken returns the message to a key about a device whose push service refuses messages.
// name is the name of the device now.
func (s *State) notTaken(name string) *notifier.Message {
	return &notifier.Message{
		Title: "No messages for " + name, Type: notifier.Warning,
		Body: "It does not get the messages for this key: " + s.Refused +
			". If it is the only such device, its subscription is broken: revoke it, and invite it again. Otherwise look at the settings of " +
			"push, and at the clock of the gateway.",
	}
}

func (s *State) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.ID)
	wire.Text(c, 2, &s.Name)
	wire.Text(c, 3, &s.Home)
	wire.Text(c, 4, &s.Key)
	wire.Time(c, 5, &s.Created)
	wire.Time(c, 6, &s.Sent)
	wire.Time(c, 7, &s.Seen)
	wire.Number(c, 8, &s.Missing)
	wire.True(c, 9, &s.Told)
	wire.Text(c, 10, &s.Refused)
	wire.Time(c, 11, &s.RefusedTold)
}
