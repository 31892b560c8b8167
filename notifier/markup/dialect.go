package markup

import (
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// A Dialect is the Markdown of a chat. It has references in angle brackets: to people
// and channels, which it mentions, to times and to emojis. The zero Dialect has none.
type Dialect string

// The dialects.
const (
	DialectSlack   Dialect = "slack"   // only the references are Slack's; links and bold text are as in Markdown
	DialectDiscord Dialect = "discord" // see https://docs.discord.com/developers/reference#message-formatting
)

var (
	slackReference   = lazyregexp.New(`\\?<([@#!])([^<>\n|]{1,1000})(?:\|([^<>\n]*))?>`)
	discordReference = lazyregexp.New(`\\?<(?:(@[!&]?|#)(\d{1,20})|t:(-?\d{1,17})(?::([tTdDfFsSR]))?|a?(:\w{1,64}:)\d{1,20}|(/[^<>\n:]{1,200}):\d{1,20}|id:(\w{1,64})(?::\d{1,20})?)>`)
)

// HasTimes reports whether a text may have references to times.
func (d Dialect) HasTimes(text string) bool {
	switch d {
	case DialectSlack:
		return strings.Contains(text, "<!date^")
	case DialectDiscord:
		return strings.Contains(text, "<t:")
	}
	return false
}

// Readable returns a text with words in place of its references, which mention nobody
// elsewhere: @channel for <!channel>, 2021-04-20 21:20 UTC for <t:1618953630>. Times
// are in zone. Code is left as it is.
func (d Dialect) Readable(text string, zone *time.Location) string {
	pattern, words := slackReference, slackWords
	switch d {
	case DialectSlack:
	case DialectDiscord:
		pattern, words = discordReference, discordWords
	default:
		return text
	}
	if !strings.Contains(text, "<") {
		return text
	}
	return outsideCode(text, func(s string) string {
		return pattern.ReplaceAllStringFunc(s, func(ref string) string {
			if ref[0] == '\\' { // it is text
				return ref
			}
			return words(pattern.FindStringSubmatch(ref), zone)
		})
	})
}

// slackWords returns the words for a reference of Slack: its label, the text that its
// sender wants where a time cannot be shown, or what it refers to.
func slackWords(m []string, zone *time.Location) string {
	kind, target, label := m[1], m[2], m[3]
	if kind != "!" {
		if label != "" {
			target = strings.TrimLeft(label, kind)
		}
		return kind + target
	}
	name, rest, _ := strings.Cut(target, "^")
	switch name {
	case "date":
		if label != "" {
			return label
		}
		seconds, _, _ := strings.Cut(rest, "^")
		return formatTime(seconds, "f", zone)
	case "subteam":
		if label != "" {
			rest = strings.TrimLeft(label, "@")
		}
		return "@" + rest
	}
	return "@" + name
}

// discordWords returns the words for a reference of Discord. It has no names of people,
// roles and channels, only their IDs.
func discordWords(m []string, zone *time.Location) string {
	switch {
	case m[1] != "":
		return m[1][:1] + m[2]
	case m[3] != "":
		return formatTime(m[3], m[4], zone)
	case m[6] != "":
		return m[6]
	case m[7] != "":
		return "#" + m[7]
	}
	return m[5]
}

// maxSeconds is the year 9999, the last one that has four digits.
const maxSeconds = 253402300799

// formatTime returns a time in a style of Discord. A relative time becomes an absolute
// one, because the text may be read at any time.
func formatTime(seconds, style string, zone *time.Location) string {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || n > maxSeconds {
		return seconds
	}
	layout := "2006-01-02 15:04 MST"
	switch style {
	case "t":
		layout = "15:04 MST"
	case "T":
		layout = "15:04:05 MST"
	case "d", "D":
		layout = "2006-01-02"
	case "F":
		layout = "Monday, 2006-01-02 15:04 MST"
	case "S":
		layout = "2006-01-02 15:04:05 MST"
	}
	return time.Unix(n, 0).In(zone).Format(layout)
}

// code matches code within a text: between three, two or one backticks.
var code = lazyregexp.New("(?s)```.*?```|``[^`].*?``|`[^`\n]+`")

// FindCode returns the beginning and the end of each piece of code in a text.
func FindCode(text string) [][]int {
	if !strings.Contains(text, "`") {
		return nil
	}
	return code.FindAllStringSubmatchIndex(text, -1)
}

// outsideCode returns text with f applied to what is not code.
func outsideCode(text string, f func(string) string) string {
	var b strings.Builder
	last := 0
	for _, at := range FindCode(text) {
		b.WriteString(f(text[last:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(f(text[last:]))
	return b.String()
}
