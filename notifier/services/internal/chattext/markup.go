package chattext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Markup is the syntax of a chat's text where it differs from Markdown.
type Markup struct {
	// Bold and Italic stand before and after such text.
	Bold, Italic string

	// Text returns plain text, escaped.
	Text func(string) string

	// Escaped returns a character that Markdown escapes with a backslash.
	Escaped func(string) string

	// Code returns text between backticks; fence is those backticks.
	Code func(fence, text string) string

	// Link returns a link or picture; the label is converted already.
	Link func(label, address string) string
}

// inlinePattern matches, in groups of two or one: code within ```, “ and `,
// label and address of a link or picture, an escaped character, and asterisks.
var inlinePattern = lazyregexp.New("(?s)(```)(.*?)```|(``)(.*?)``|(`)([^`]*)`" +
	`|!?\[((?:\\.|[^\]\\])*)\]\(<?([^)>\s]*)>?(?:\s[^)]*)?\)` +
	`|\\([!-/:-@\[-` + "`" + `{-~])|\*{1,3}`)

// FromMarkdown converts Markdown to the markup. It is for Markdown that was
// converted from HTML: text that people write for the chat has its markup
// already.
func (u Markup) FromMarkdown(md string) string {
	var b strings.Builder
	last := 0
	for _, at := range inlinePattern.FindAllStringSubmatchIndex(md, -1) {
		group := func(n int) string { return md[at[2*n]:at[2*n+1]] }
		b.WriteString(u.Text(md[last:at[0]]))
		last = at[1]
		switch {
		case at[2] >= 0:
			b.WriteString(u.Code(group(1), group(2)))
		case at[6] >= 0:
			b.WriteString(u.Code("`", group(4)))
		case at[10] >= 0:
			b.WriteString(u.Code("`", group(6)))
		case at[16] >= 0 && group(8) == "":
			b.WriteString(u.FromMarkdown(group(7)))
		case at[16] >= 0:
			b.WriteString(u.Link(u.FromMarkdown(group(7)), group(8)))
		case at[18] >= 0:
			b.WriteString(u.Escaped(group(9)))
		default:
			before, _ := utf8.DecodeLastRuneInString(md[:at[0]])
			after, _ := utf8.DecodeRuneInString(md[at[1]:])
			b.WriteString(u.emphasis(at[1]-at[0], before, after))
		}
	}
	b.WriteString(u.Text(md[last:]))
	return b.String()
}

// emphasis returns what a run of asterisks between two characters means: the
// begin or end of emphasis, or asterisks if there is space on both sides.
func (u Markup) emphasis(asterisks int, before, after rune) string {
	space := func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) }
	switch {
	case space(before) && space(after):
		return u.Escaped(strings.Repeat("*", asterisks))
	case asterisks == 1:
		return u.Italic
	case asterisks == 2:
		return u.Bold
	case space(after):
		return u.Italic + u.Bold
	}
	return u.Bold + u.Italic
}
