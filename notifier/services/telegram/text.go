package telegram

import (
	"html"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

// text returns the body in one of Telegram's markups, and the name of the markup.
// See https://core.telegram.org/bots/api#formatting-options.
func (t *service) text(m *notifier.Message) (text, mode string) {
	switch m.Format {
	case notifier.HTML:
		return reduceHTML(m.Body), "HTML"
	case notifier.Text:
		return plainMarkup.ReplaceAllStringFunc(m.Body, html.EscapeString), "HTML"
	}
	text, mode = m.Body, "MARKDOWN"
	if t.mdv == 2 {
		mode = "MarkdownV2"
	}
	switch {
	case m.Source == notifier.HTML:
		text = fromMarkdown(text, t.mdv)
	case m.Source == notifier.Text && t.mdv == 2:
		text = markdownEscaper.Replace(text)
	}
	return text, mode
}

// plainMarkup matches what Telegram reads as HTML in a plain text.
var plainMarkup = regexp.MustCompile(`[<>]|&#?\w+;`)

// markdownEscaper escapes the reserved characters of Telegram's Markdown, version
// 2.
var markdownEscaper = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\_*[]()~`>#+-=|{}.!" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// fromMarkdown converts Markdown that was converted from HTML to Telegram's
// Markdown.
func fromMarkdown(md string, version int) string {
	code := strings.NewReplacer(`\`, `\\`, "`", "\\`")
	address := strings.NewReplacer(`\`, `\\`, ")", `\)`)
	u := chattext.Markup{
		Bold: "*", Italic: "_",
		Text:    markdownEscaper.Replace,
		Escaped: markdownEscaper.Replace,
		Code:    func(fence, text string) string { return fence + code.Replace(text) + fence },
		Link:    func(label, to string) string { return "[" + label + "](" + address.Replace(to) + ")" },
	}
	if version == 1 {
		u.Text = func(s string) string { return s }
		u.Escaped = strings.NewReplacer("`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`).Replace
	}
	return u.FromMarkdown(md)
}
