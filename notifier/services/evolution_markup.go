package services

import (
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

const whatsapp = markup.DialectWhatsApp

// evolutionText returns title and body as one text in WhatsApp's markup, which a plain text
// may have already.
func evolutionText(m *notifier.Message) string {
	title, format, body := m.Title, "# %s", m.Body
	switch {
	case m.Format != notifier.Markdown:
		return m.Text("\r\n")
	case m.Source == notifier.Text:
	case m.Source == notifier.Markdown || m.Foreign:
		title, format, body = whatsapp.Write(title, false), "*%s*", whatsapp.Write(body, false)
	case m.Dialect != "": // its title is plain
		format, body = "*%s*", whatsapp.Write(body, false)
	default:
		title, format, body = markup.Convert(title, notifier.HTML, notifier.Text), "*%s*", whatsapp.Write(body, false)
	}
	title = strings.TrimLeft(strings.Trim(title, "*"), "\r\n\t\v\f #-")
	mark := fmt.Sprintf(format, title)
	switch {
	case title == "":
		return body
	case body == "":
		return mark
	}
	return mark + "\n" + body
}
