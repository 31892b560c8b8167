package slack

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// text is the body of a message, written in the markup of a chat.
type text struct {
	compose.Lines
	dialect markup.Dialect
}

// own adds a text in the markup of the chat. Markup left open in it ends there.
func (t *text) own(s string) { t.Add(t.dialect.Contain(s)) }

// plain adds a plain text.
func (t *text) plain(s string) { t.Add(t.dialect.Escape(s)) }

// labelled returns a text that the chat shows without markup, such as the footer of an attachment.
// In Slack, it may still have references, links and escapes.
func (t *text) labelled(s string) string {
	if t.dialect == markup.DialectSlack {
		return unformatted(s)
	}
	return t.dialect.Escape(markup.ReplaceEmojis(s))
}

// titled returns the title of an attachment or of a field. In Mattermost and Rocket.Chat, it may
// have markup.
func (t *text) titled(s string) string {
	if t.dialect == markup.DialectSlack {
		return unformatted(s)
	}
	return t.dialect.Contain(s)
}

// unformatted returns a text of Slack in which characters such as * are no markup.
func unformatted(s string) string {
	references := reference.FindAllString(s, -1)
	parts := strings.Split(markup.DialectSlack.Escape(words(reference.ReplaceAllString(strings.ReplaceAll(s, place, ""), place))), place)
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(parts)-1 {
			b.WriteString(references[i])
		}
	}
	return b.String()
}

// reference matches text in angle brackets. place is put in its place.
var reference = lazyregexp.New(`<[^<>\n]+>`)

const place = "\uE000"

// words returns a plain text of Slack without its three escapes and with emojis in place of their
// names.
func words(s string) string { return markup.ReplaceEmojis(entities.Replace(s)) }

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// markdown adds a text in Markdown.
func (t *text) markdown(s string) { t.Add(t.dialect.Write(s, true)) }

// link adds a link with a text in the markup of the chat. If the text or a valid address is
// missing, it adds only the other.
func (t *text) link(label, address string) {
	switch {
	case !source.IsAddress(address):
		t.Add(label)
	case strings.TrimSpace(label) == "":
		t.Add(address)
	default:
		t.Add(t.dialect.Link(label, address))
	}
}

// object returns a text object of Slack.
func (t *text) object(v any) string {
	if payload.Text(payload.Get(v, "type")) == "mrkdwn" {
		return t.dialect.Contain(payload.Text(payload.Get(v, "text")))
	}
	return t.dialect.Escape(plainObject(v))
}

// plainObject returns the text of a text object that is plain text.
func plainObject(v any) string {
	s := payload.Text(payload.Get(v, "text"))
	if payload.Get(v, "emoji") == false {
		return entities.Replace(s)
	}
	return words(s)
}
