package compose

import (
	"cmp"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// SetType sets the type of a message whose API has a priority instead of a type. priority is the
// type for the priority, and state is the type for the rest of the message; either may be "". A
// success stays one with any priority, because programs announce the end of an alert as urgently as
// the alert.
func SetType(m *source.Message, priority, state notifier.Type) {
	m.Type = string(priority)
	if state == notifier.Success {
		m.Type = string(state)
		return
	}
	RaiseType(m, state)
}

// StateWithoutColor returns the state in the text of m, or "" if m has a type already: a colour
// takes precedence over words.
func StateWithoutColor(m *source.Message) notifier.Type {
	if m.Type != "" {
		return ""
	}
	return StateOfText(m.Title, m.Body)
}

// Worse returns the more serious of two states.
func Worse(a, b notifier.Type) notifier.Type {
	if severity(b) > severity(a) {
		return b
	}
	return a
}

// stateTags are tags for ntfy, mostly names of emojis, that programs use to mark a state.
var stateTags = map[string]notifier.Type{
	"white_check_mark": notifier.Success, "heavy_check_mark": notifier.Success, "ballot_box_with_check": notifier.Success,
	"green_circle": notifier.Success, "large_green_circle": notifier.Success, "green_square": notifier.Success,
	"+1": notifier.Success, "thumbsup": notifier.Success, "tada": notifier.Success,
	"resolved": notifier.Success, "recovered": notifier.Success, "success": notifier.Success,
	"warning": notifier.Warning, "yellow_circle": notifier.Warning, "orange_circle": notifier.Warning,
	"x": notifier.Failure, "red_circle": notifier.Failure, "rotating_light": notifier.Failure, "no_entry": notifier.Failure,
	"no_entry_sign": notifier.Failure, "stop_sign": notifier.Failure, "skull": notifier.Failure, "sos": notifier.Failure,
	"fire": notifier.Failure, "boom": notifier.Failure,
	"critical": notifier.Failure, "error": notifier.Failure, "failure": notifier.Failure, "failed": notifier.Failure,
}

// StateOfTags returns the most serious state among tags for ntfy, or "".
func StateOfTags(tags []string) (t notifier.Type) {
	for _, tag := range tags {
		t = Worse(t, stateTags[strings.ToLower(strings.TrimSpace(tag))])
	}
	return t
}

// stateRunes are emojis that texts use in the same way.
var stateRunes = map[rune]notifier.Type{
	'✅': notifier.Success, '✔': notifier.Success, '☑': notifier.Success, '🟢': notifier.Success, '🟩': notifier.Success,
	'⚠': notifier.Warning, '🟡': notifier.Warning, '🟠': notifier.Warning,
	'❌': notifier.Failure, '🔴': notifier.Failure, '🚨': notifier.Failure, '⛔': notifier.Failure, '🚫': notifier.Failure, '🛑': notifier.Failure,
	'💀': notifier.Failure, '🆘': notifier.Failure,
}

var (
	// stateWord matches a word in capitals at the beginning of a text: "CLEAR, …" of Netdata, "OK -
	// …" of plugins for Nagios.
	stateWord = lazyregexp.New(`^([A-Z]{2,20})(?:,| -) `)

	// statePhrase matches a sentence about a state.
	statePhrase = lazyregexp.New(`(?i)\b(?:is|are|has been|have been) (?:now )?(resolved|recovered|firing|triggered)\b`)

	// stateEnd matches the end of a text about a state: "… is up", "… is DOWN".
	stateEnd = lazyregexp.New(`(?i)\bis (?:now |back )?(up|down)(?: again)?[^\pL\pN]{0,8}$`)
)

// StateOfText returns the state that words or emojis of a title name or, if it names none, words or
// emojis of the first line of the body. It is "" for no state, and the most serious one of several.
// Without a title, a short first line takes its place, and the second line counts, too.
func StateOfText(title, body string) notifier.Type {
	const most = 1000 // bytes; a text states it at its beginning
	for _, line := range headlines(title, body) {
		line = markup.TruncateBytes(line, most)
		if t := cmp.Or(notifier.TypeOfTitle(line), stateOfLine(line)); t != "" {
			return t
		}
	}
	return ""
}

// headlines returns the lines that may name a state. An emphasized line before them is the name of
// a group, such as a monitor of Uptime Kuma.
func headlines(title, body string) []string {
	const short = 100 // bytes
	first, rest, _ := strings.Cut(strings.TrimSpace(body), "\n")
	if title != "" {
		return []string{title, first}
	}
	if groupLine.MatchString(first) {
		first, rest, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	}
	if len(first) > short {
		return []string{first}
	}
	second, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	return []string{first, second}
}

// groupLine matches a line that is emphasized as a whole.
var groupLine = lazyregexp.New(`^_[^_]+_$`)

// stateOfLine returns the state that a line names with an emoji or a sentence, or "".
func stateOfLine(s string) (t notifier.Type) {
	for _, r := range s {
		t = Worse(t, stateRunes[r])
	}
	for _, pattern := range []*lazyregexp.Regexp{stateWord, statePhrase, stateEnd} {
		if m := pattern.FindStringSubmatch(s); m != nil {
			if state, known := typeword.TypeOf(m[1]); known && state != notifier.Info {
				t = Worse(t, state)
			}
		}
	}
	return t
}
