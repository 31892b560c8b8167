package telegram

import (
	"html"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// text returns the body in one of Telegram's markups, and the name of the markup.
// See https://core.telegram.org/bots/api#formatting-options.
func (t *service) text(m *notifier.Message) (text, mode string) {
	switch m.Format {
	case notifier.HTML:
		return reduceHTML(m.Body), "HTML"
	case notifier.Text:
		if (m.Source == notifier.Text || m.Source == "") && !m.Foreign && isMarkup(m.Body) {
			return m.Body, "HTML"
		}
		return plainMarkup.ReplaceAllStringFunc(m.Body, html.EscapeString), "HTML"
	}
	text, mode = m.Body, "MARKDOWN"
	if t.mdv == 2 {
		mode = "MarkdownV2"
	}
	switch {
	case m.Source != notifier.Text:
		text = markdownDialects[t.mdv].Write(text, false)
	case m.Source == notifier.Text && t.mdv == 2:
		text = markdownEscaper.Replace(text)
	case m.Source == notifier.Text && m.Foreign:
		text = escapeVersion1(text)
	}
	return text, mode
}

// isMarkup reports whether a plain text is valid as Telegram's HTML and has an
// element: all elements are closed, and there is no other < or >. Such a text is
// sent as HTML.
func isMarkup(text string) bool {
	var open []string
	found := false
	rest := text
	for {
		i := strings.IndexAny(rest, "<>")
		if i < 0 {
			return found && len(open) == 0
		}
		m := markupTag.FindStringSubmatch(rest[i:])
		switch {
		case m == nil:
			return false
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			return false
		default:
			open = open[:len(open)-1]
		}
		found = true
		rest = rest[i+len(m[0]):]
	}
}

// markupTag matches a tag that Telegram reads, in lower case as people write it.
var markupTag = lazyregexp.New(`^<(/?)(b|strong|i|em|u|ins|s|strike|del|code|pre|blockquote|tg-spoiler|a)` +
	`(?: (?:href|class)="[^"<>]*"| expandable)?>`)

// plainMarkup matches what Telegram reads as HTML in a plain text.
var plainMarkup = lazyregexp.New(`[<>]|&#?\w+;`)

// markdownEscaper escapes the reserved characters of Telegram's Markdown, version
// 2.
var markdownEscaper = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\_*[]()~`>#+-=|{}.!" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// markdownDialects are the versions of Telegram's Markdown.
var markdownDialects = map[int]markup.Dialect{1: markup.DialectTelegram1, 2: markup.DialectTelegram2}

// escapeVersion1 escapes the characters that are markup in Telegram's Markdown,
// version 1.
var escapeVersion1 = strings.NewReplacer("`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`).Replace
