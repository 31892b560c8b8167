package telegram

import (
	"html"
	"regexp"
	"strings"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

// text is the message in one of Telegram's markups, and its name.
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

// plainMarkup finds what Telegram takes for HTML in a plain text.
var plainMarkup = regexp.MustCompile(`[<>]|&#?\w+;`)

// markdownEscaper escapes what is reserved in Telegram's Markdown, version 2.
var markdownEscaper = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\_*[]()~`>#+-=|{}.!" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// fromMarkdown turns Markdown that was made of HTML into Telegram's.
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

// allowedTags are the elements that Telegram knows, by their names and by
// other names for the same.
var allowedTags = map[string]string{
	"b": "b", "strong": "b", "i": "i", "em": "i", "caption": "i", "u": "u", "ins": "u", "s": "s", "strike": "s", "del": "s",
	"a": "a", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-spoiler": "tg-spoiler",
	"h1": "b", "h2": "b", "h3": "b", "h4": "b", "h5": "b", "h6": "b", "title": "b",
}

var blockElements = regexp.MustCompile(`^(br|hr|p|div|ul|ol|li|h[1-6]|title|pre|blockquote|table|tr|section|article|header|footer|dl|dt|dd|figure)$`)

// reduceHTML reduces HTML to what Telegram takes. Of an element that it
// does not know the content remains; what HTML does not know either, stays
// as the author wrote it.
func reduceHTML(text string) string {
	z := nethtml.NewTokenizer(strings.NewReader(text))
	var b htmlWriter
	skip := "" // the element whose content is none to read
	for {
		kind := z.Next()
		raw := string(z.Raw())
		token := z.Token()
		switch {
		case kind == nethtml.ErrorToken:
			return strings.TrimSpace(b.String())
		case kind == nethtml.CommentToken, kind == nethtml.DoctypeToken:
		case skip != "":
			if kind == nethtml.EndTagToken && token.Data == skip {
				skip = ""
			}
		case kind == nethtml.TextToken:
			b.text(token.Data)
		case atom.Lookup([]byte(token.Data)) == 0 && allowedTags[token.Data] == "":
			b.WriteString(raw)
		case kind == nethtml.EndTagToken:
			b.end(token.Data)
		case token.Data == "script" || token.Data == "style":
			skip = token.Data
		default:
			b.start(token)
		}
	}
}
