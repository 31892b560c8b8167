package markup

import (
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// A Dialect is the markup of a chat. The zero Dialect means ordinary Markdown and HTML.
type Dialect string

// The dialects that are read. Their texts have references in angle brackets: to people
// and channels, which they mention, to times and to emojis.
const (
	DialectSlack      Dialect = "slack"      // see https://docs.slack.dev/messaging/formatting-message-text
	DialectDiscord    Dialect = "discord"    // see https://docs.discord.com/developers/reference#message-formatting
	DialectMattermost Dialect = "mattermost" // see https://docs.mattermost.com/collaborate/format-messages.html
	DialectRocketChat Dialect = "rocketchat" // see https://docs.rocket.chat/docs/message-formatting
)

var (
	slackReference   = lazyregexp.New(`<([@#!])(\w[^<>\n|]{0,999})(?:\|([^<>\n]*))?>`)
	discordReference = lazyregexp.New(`<(?:(@[!&]?|#)(\d{1,20})|t:(-?\d{1,17})(?::([tTdDfFsSR]))?|` +
		`a?(:\w{1,64}:)\d{1,20}|(/[^<>\n:]{1,200}):\d{1,20}|id:(\w{1,64})(?::\d{1,20})?)>`)
)

// HasTimes reports whether a text may have references to times.
func (d Dialect) HasTimes(text string) bool {
	switch d {
	case DialectSlack, DialectMattermost, DialectRocketChat:
		return strings.Contains(text, "<!date^")
	case DialectDiscord:
		return strings.Contains(text, "<t:")
	}
	return false
}

// Convert converts a text from the dialect to a format. References become words, which
// mention nobody: @channel for <!channel>, 2021-04-20 21:20 UTC for <t:1618953630>. Times
// are in zone, or in UTC if it is nil. A text of the zero Dialect is returned as it is.
//
// The text is never HTML: what looks so are words.
func (d Dialect) Convert(text string, to Format, zone *time.Location) string {
	if chats[d] == nil {
		return text
	}
	if zone == nil {
		zone = time.UTC
	}
	doc := d.read(text, zone)
	switch to {
	case HTML:
		return writeHTML(doc)
	case Markdown:
		return writeMarkdown(doc)
	}
	return textOf(writeHTML(doc), textStyle{addresses: true, paragraphs: true})
}

// Title returns a text of the dialect as a title: one line of words, without the
// addresses of links.
func (d Dialect) Title(text string) string {
	if chats[d] == nil {
		return OneLine(text)
	}
	return strings.TrimSpace(OneLine(textOf(writeHTML(d.read(text, time.UTC)), textStyle{})))
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
