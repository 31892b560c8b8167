package notifier

import (
	"fmt"
	"strings"
	"time"
)

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
