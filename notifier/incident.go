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
