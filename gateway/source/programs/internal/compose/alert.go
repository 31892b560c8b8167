package compose

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// This file has the parts that the APIs of incident tools share. Their clients open, acknowledge
// and close alerts.

// The bounds of the details read from an alert.
const (
	MaxDetail         = 2000 // bytes of a value
	maxNamesOfDetails = 200  // members, including those that add nothing to the text
)

// Details adds the members of an object, sorted by name, or another value as it is. It leaves out
// empty members, members named in ignored, and values that the text already has.
func (l *Lines) Details(v any, ignored ...string) {
	object, ok := v.(map[string]any)
	if !ok {
		l.Add(markup.TruncateBytes(payload.Text(v), MaxDetail))
		return
	}
	shown := 0
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if shown == MaxFacts || i == maxNamesOfDetails {
			l.Add("and " + payload.Text(len(object)-i) + " more")
			break
		}
		value := strings.TrimSpace(markup.TruncateBytes(payload.Text(object[name]), MaxDetail))
		if value == "" || slices.Contains(ignored, name) || l.Has(value) {
			continue
		}
		shown++
		separator := ": "
		if strings.Contains(value, "\n") {
			separator = ":\n"
		}
		l.Add(name + separator + value)
	}
}

// minKnown is the minimum length in bytes of a value that Details looks for in the text. A shorter
// one may occur there by chance.
const minKnown = 3

// Has reports whether one of the lines has s as words of its own.
func (l *Lines) Has(s string) bool {
	return len(s) >= minKnown && slices.ContainsFunc(l.Parts, func(part string) bool {
		for {
			before, after, found := strings.Cut(part, s)
			if !found {
				return false
			}
			last, _ := utf8.DecodeLastRuneInString(before)
			next, _ := utf8.DecodeRuneInString(after)
			if !isWordRune(last) && !isWordRune(next) {
				return true
			}
			part = after
		}
	})
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Origin adds the origin of a message, with a label unless it is an address.
func (l *Lines) Origin(label, value string) {
	switch value = strings.TrimSpace(markup.TruncateBytes(value, MaxDetail)); {
	case source.IsAddress(value):
		l.Add(value)
	case value != "":
		l.Add(label + ": " + value)
	}
}

// hash matches an alert name that is a hash, as Alertmanager and Grafana send it.
var hash = lazyregexp.New(`^[0-9a-f]{32,}$`)

// NameAlert returns the name that people know the alert of m by, if m has only its alias: the title
// with which it was opened, or else the alias, shortened if it is a hash.
func NameAlert(m *source.Message, r *source.Request) string {
	m.Named = true
	if r.AlertTitle != nil {
		if title := r.AlertTitle(m.Incident); title != "" {
			return title
		}
	}
	if hash.MatchString(m.Incident) {
		return m.Incident[:8] + "…"
	}
	return m.Incident
}

// SetHeadline sets the title, or adds a text that is too long for a title to the body.
func SetHeadline(m *source.Message, s string, body *Lines) {
	if s = strings.TrimSpace(s); IsTitleLike(s) {
		m.Title = s
	} else {
		body.Add(s)
	}
}

// IsTitleLike reports whether a text can be a title: it is one short line.
func IsTitleLike(s string) bool {
	const max = 200 // bytes
	return s != "" && len(s) <= max && !strings.Contains(s, "\n")
}

// SetOver makes an alert a success if its text begins with a word such as RESOLVED: Gatus opens an
// alert with such a text before it closes it.
func SetOver(m *source.Message, text string) {
	if notifier.TypeOfTitle(text) == notifier.Success {
		m.Type = string(notifier.Success)
	}
}

// WithState puts the state of an alert before its text, unless the text says it already.
func WithState(state notifier.IncidentState, s string) string {
	s = strings.TrimSpace(s)
	switch {
	case state == notifier.Acknowledged:
		return "Acknowledged: " + s
	case state == notifier.Resolved && StateOfText(s, "") != notifier.Success:
		return "Resolved: " + s
	}
	return s
}

// Untold returns the text for a client if nobody is told of its message.
func Untold(m *source.Message) string { return "Nothing was sent: " + m.Untold }
