package chattext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markup is how a chat writes what Markdown writes in another way. It is for
// Markdown that was made of HTML: what people write by hand for a chat is in
// the chat's own markup already.
type Markup struct {
	Bold    string                             // before and after bold text
	Italic  string                             // before and after italics
	Text    func(string) string                // plain text
	Escaped func(string) string                // a character that Markdown has a backslash before
	Code    func(fence, text string) string    // code between backticks
	Link    func(label, address string) string // a link or a picture; the label is rewritten
}

var inlinePattern = regexp.MustCompile("(?s)(```)(.*?)```|(``)(.*?)``|(`)([^`]*)`" +
	`|!?\[((?:\\.|[^\]\\])*)\]\(<?([^)>\s]*)>?(?:\s[^)]*)?\)` +
	`|\\([!-/:-@\[-` + "`" + `{-~])|\*{1,3}`)

// FromMarkdown turns Markdown into the chat's markup.
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

// emphasis is what so many asterisks between two characters stand for.
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
