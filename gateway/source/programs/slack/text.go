package slack

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// text is the body of a message, written in the markup of a chat.
type text struct {
	compose.Lines
	dialect markup.Dialect
}

// own adds a text in the markup of the chat. What it leaves open does not go on in what
// follows it.
func (t *text) own(s string) { t.Add(t.dialect.Contain(s)) }

// plain adds a plain text.
func (t *text) plain(s string) { t.Add(t.dialect.Escape(s)) }

// markdown adds a text in Markdown.
func (t *text) markdown(s string) { t.Add(t.dialect.Write(s, true)) }

// link adds a link, whose text is in the markup of the chat. If the text or a valid address
// is missing, it adds the other one.
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
	s := payload.Text(payload.Get(v, "text"))
	if payload.Text(payload.Get(v, "type")) == "mrkdwn" {
		return t.dialect.Contain(s)
	}
	return t.dialect.Escape(markup.ReplaceEmojis(s))
}
