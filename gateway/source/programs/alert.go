package programs

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

// This file has what the APIs of incident tools share. Their clients open, acknowledge
// and close alerts.

// The bounds of the details of an alert that are read.
const (
	maxDetail         = 2000 // bytes of a value
	maxNamesOfDetails = 200  // of members, also of those that add nothing to the text
)

// details adds the members of an object, sorted by name, or another value as it is. It
// leaves out empty members, those named in ignored, and values that the text has already.
func (l *lines) details(v any, ignored ...string) {
	object, ok := v.(map[string]any)
	if !ok {
		l.add(markup.TruncateBytes(payload.Text(v), maxDetail))
		return
	}
	shown := 0
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if shown == maxFacts || i == maxNamesOfDetails {
			l.add("and " + payload.Text(len(object)-i) + " more")
			break
		}
		value := strings.TrimSpace(markup.TruncateBytes(payload.Text(object[name]), maxDetail))
		if value == "" || slices.Contains(ignored, name) || l.has(value) {
			continue
		}
		shown++
		separator := ": "
		if strings.Contains(value, "\n") {
			separator = ":\n"
		}
		l.add(name + separator + value)
	}
}

// minKnown is the minimum length of a value that the text can have already, in bytes. A
// shorter one may stand there by chance.
const minKnown = 3

// has reports whether one of the lines has s as words of its own.
func (l *lines) has(s string) bool {
	return len(s) >= minKnown && slices.ContainsFunc(l.parts, func(part string) bool {
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

// origin adds who or what a message comes from, with a label unless it is an address.
func (l *lines) origin(label, value string) {
	switch value = strings.TrimSpace(markup.TruncateBytes(value, maxDetail)); {
	case source.IsAddress(value):
		l.add(value)
	case value != "":
		l.add(label + ": " + value)
	}
}

// hash matches the name of an alert that is a hash, as Alertmanager and Grafana have it.
var hash = lazyregexp.New(`^[0-9a-f]{32,}$`)

// shortAlias returns the name of an alert for people, who cannot read a whole hash.
func shortAlias(alias string) string {
	if hash.MatchString(alias) {
		return alias[:8] + "…"
	}
	return alias
}

// setHeadline sets the title, or adds a text that is too long for a title to the body.
func setHeadline(m *source.Message, s string, body *lines) {
	if s = strings.TrimSpace(s); isTitleLike(s) {
		m.Title = s
	} else {
		body.add(markup.TruncateBytes(s, maxBody))
	}
}

// withState puts the state of an alert before its text, unless the text says it already.
func withState(state notifier.IncidentState, s string) string {
	s = strings.TrimSpace(s)
	switch {
	case state == notifier.Acknowledged:
		return "Acknowledged: " + s
	case state == notifier.Resolved && stateOfText(s, "") != notifier.Success:
		return "Resolved: " + s
	}
	return s
}
