package services

import (
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// whatsappTokens matches an escaped character, code, a link or a mark of emphasis in
// Markdown.
var whatsappTokens = lazyregexp.New("(?s)\\\\([!-/:-@\\[-`{-~])" +
	"|```(.*?)```|`([^`]+)`" +
	`|!?\[((?:[^\[\]\\]|\\.)*)\]\(<?([^()<>\s]*)>?(?:\s+"[^"]*")?\)` +
	`|(\*\*\*|\*\*|\*|~~)`)

// whatsappText converts Markdown to WhatsApp's markup: *bold*, _italic_,
// ~strikethrough~ and ```code```. A link becomes its text, followed by the address.
func whatsappText(markdown string) string {
	var out strings.Builder
	last := 0
	bold := false
	for _, m := range whatsappTokens.FindAllStringSubmatchIndex(markdown, -1) {
		out.WriteString(markdown[last:m[0]])
		last = m[1]
		group := func(i int) string { return markdown[m[2*i]:m[2*i+1]] }
		switch {
		case m[2] >= 0:
			out.WriteString(group(1))
		case m[4] >= 0:
			out.WriteString("```" + group(2) + "```")
		case m[6] >= 0:
			out.WriteString("```" + group(3) + "```")
		case m[8] >= 0:
			text, address := whatsappText(group(4)), group(5)
			if text == "" || text == address {
				out.WriteString(address)
			} else {
				out.WriteString(text + " (" + address + ")")
			}
		default:
			switch mark := group(6); {
			case mark == "~~":
				out.WriteString("~")
			case mark == "*":
				out.WriteString("_")
			case mark == "**":
				out.WriteString("*")
				bold = !bold
			case bold:
				out.WriteString("_*")
				bold = false
			default:
				out.WriteString("*_")
				bold = true
			}
		}
	}
	return out.String() + markdown[last:]
}

// evolutionText returns title and body as one text. It converts only text that was
// HTML to WhatsApp's markup. Markdown is sent as the client wrote it.
func evolutionText(m *notifier.Message) string {
	title := m.Title
	if m.Format != notifier.Markdown || m.Source == notifier.Markdown {
		return m.Text("\r\n")
	}
	format, body := "# %s", m.Body
	if m.Source == notifier.HTML {
		title, format, body = markup.Convert(title, notifier.HTML, notifier.Text), "*%s*", whatsappText(body)
	}
	title = strings.TrimLeft(title, "\r\n\t\v\f #-")
	mark := fmt.Sprintf(format, title)
	switch {
	case title == "":
		return body
	case body == "":
		return mark
	}
	return mark + "\n" + body
}
