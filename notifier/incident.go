package notifier

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Incident identifies the alert or other subject that messages are about. The zero Incident is
// none.
type Incident struct {
	// Name is the incident as the sender of its messages calls it.
	Name string

	// ID stands for the incident at destinations: 32 characters from a to z and
	// from 2 to 7. All messages of an incident have the same ID, at every gateway.
	// It is empty for a message without an incident.
	ID string

	// State is the change that the message reports. It is never empty when a service gets the
	// message. The zero State follows from the message's type: failure and warning open the
	// incident, success resolves it, and info adds to it.
	State IncidentState

	// Alerts are the open alerts of the incident, if its source lists them: a word for each alert
	// of a group (see [AlertWords]). An alert that joins is a new state.
	Alerts string

	// Ended is when the incident was resolved, if a later message reported that before this one
	// could be sent. The text of the message includes it.
	Ended time.Time

	// OpenFor is how long the incident that the message resolves was open; 0 if unknown. The text
	// ends with it, except at services for programs and incident tools.
	OpenFor time.Duration
}

// OpenTime returns how long the incident was open, as in "14 min" or "2 h 5 min", or "".
func (i Incident) OpenTime() string {
	units := []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}
	for n, u := range units {
		if i.OpenFor < u.of || u.name == "s" {
			continue
		}
		text, rest := fmt.Sprintf("%d %s", i.OpenFor/u.of, u.name), i.OpenFor%u.of
		if next := units[n+1]; next.name != "s" && rest >= next.of {
			text += fmt.Sprintf(" %d %s", rest/next.of, next.name)
		}
		return text
	}
	if i.OpenFor <= 0 {
		return ""
	}
	return fmt.Sprintf("%d s", max(1, i.OpenFor/time.Second))
}

// IncidentState is the change of an incident that a message reports.
type IncidentState string

// The states of an incident.
const (
	Open         IncidentState = "open"         // there is a problem, or it is worse or better than before
	Updated      IncidentState = "updated"      // there is something to add; the state stays the same
	Acknowledged IncidentState = "acknowledged" // somebody takes care of it
	Resolved     IncidentState = "resolved"     // the problem is over
)

// MaxIncidentName is the maximum length of the name of an incident, in bytes.
// Longer ones are replaced by their hash (see [IncidentName]).
const MaxIncidentName = 255

// IncidentName returns the name of an incident as messages have it, without white space around it.
// hashed reports whether the name was longer than [MaxIncidentName] and replaced by a hash. The
// error is for a name with control characters.
func IncidentName(s string) (name string, hashed bool, err error) {
	s = strings.TrimSpace(s)
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", false, errIncidentName
	}
	if len(s) > MaxIncidentName {
		return HashIncidentName(s), true, nil
	}
	return s, false, nil
}

var errIncidentName = errors.New("it has a control character, such as a line break; use printable characters")

// HashIncidentName returns the hash that replaces a name that cannot be used.
func HashIncidentName(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// For returns i with its ID. Messages in the format of source to a key have the same ID if their
// incident has the same name. key is "" for messages without a key, and source for messages in the
// gateway's own format. An incident without a name has no ID.
func (i Incident) For(key, source string) Incident {
	if i.Name == "" {
		return Incident{}
	}
	// None of the three has a zero byte.
	sum := sha256.Sum256([]byte(key + "\x00" + source + "\x00" + i.Name))
	i.ID = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
	return i
}

// maxAlerts is the maximum number of alerts of an incident. With more, their identifiers are not
// stored.
const maxAlerts = 100

// AlertWords returns [Incident.Alerts] for the identifiers of the alerts that are open.
func AlertWords(identifiers []string) string {
	var words []string
	for _, id := range identifiers {
		sum := sha256.Sum256([]byte(id))
		words = append(words, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5])))
	}
	slices.Sort(words)
	if words = slices.Compact(words); len(words) > maxAlerts {
		return ""
	}
	return strings.Join(words, " ")
}

// Joined reports whether an alert is open in i that was not among the alerts before.
func (i Incident) Joined(before string) bool {
	if before == "" {
		return false
	}
	known := strings.Fields(before)
	return slices.ContainsFunc(strings.Fields(i.Alerts), func(word string) bool { return !slices.Contains(known, word) })
}

// StateOf returns the state of an incident after a message of type t.
func StateOf(t Type) IncidentState {
	switch t {
	case Failure, Warning:
		return Open
	case Success:
		return Resolved
	}
	return Updated
}

// Missed is the part of an incident that a destination missed before a message about it. The last
// sentence of the message reports it.
type Missed struct {
	Messages []MissedMessage // the oldest first
	Omitted  int             // number of messages before them

	// Repeats is the number of equal messages that were suppressed before this one. Since is when
	// the first of them arrived.
	Repeats int
	Since   time.Time
}

// MissedMessage is a message that was not delivered.
type MissedMessage struct {
	State   IncidentState
	Time    time.Time
	Unclear bool // it may have arrived, in whole or in part
}

// maxToldMissed is the maximum number of messages that the sentence names.
const maxToldMissed = 5

// sentence returns the sentence about m for a destination in a time zone. now is the time of the
// message.
func (m Missed) sentence(now time.Time, zone *time.Location) string {
	total := len(m.Messages) + m.Omitted
	if total == 0 {
		return ""
	}
	unclear := len(m.Messages) > 0
	var parts []string
	for i, x := range m.Messages {
		unclear = unclear && x.Unclear
		if i < maxToldMissed {
			parts = append(parts, "the "+x.State.noun()+" of "+shortTime(x.Time.In(zone), now.In(zone)))
		}
	}
	if more := total - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	list := parts[0]
	if n := len(parts); n > 1 {
		list = strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	text := list + " " + wasOrWere(total) + " not delivered."
	if unclear {
		text = "It is unclear whether " + list + " arrived."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// count returns a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// noun returns the noun for a message with this state.
func (s IncidentState) noun() string {
	switch s {
	case Open:
		return "alert"
	case Resolved:
		return "resolution"
	case Acknowledged:
		return "acknowledgement"
	}
	return "update"
}

// shortTime returns the time of day, with the date if it is not today's.
func shortTime(t, now time.Time) string {
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// toldBesides returns the sentences at the end of a message about an incident, or "".
func (m Missed) toldBesides(x *Message, zone *time.Location) string {
	text := m.sentence(x.Time, zone)
	if m.Repeats > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s %s since %s %s not sent.", text,
			count(m.Repeats, "repetition"), shortTime(m.Since.In(zone), x.Time.In(zone)), wasOrWere(m.Repeats)))
	}
	if ended := x.Incident.Ended; !ended.IsZero() {
		text = strings.TrimSpace("It was resolved at " + shortTime(ended.In(zone), x.Time.In(zone)) + ". " + text)
	}
	return text
}

// with returns the message with a text at its end.
func (x *Message) with(text string) *Message {
	c := *x
	switch {
	case x.Format == HTML:
		c.Body += "<p>" + text + "</p>"
	case strings.TrimSpace(x.Body) == "":
		c.Body = text
	default:
		c.Body = strings.TrimRight(x.Body, "\r\n") + "\n\n" + text
	}
	return &c
}
