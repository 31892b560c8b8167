package services

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// chatMarkup is how a chat writes what Markdown writes in another way. It is for
// Markdown that was made of HTML: what people write by hand for a chat is in
// the chat's own markup already.
type chatMarkup struct {
	bold   string                             // before and after bold text
	italic string                             // before and after italics
	text   func(string) string                // plain text
	quoted func(string) string                // a character that Markdown has a backslash before
	code   func(fence, text string) string    // code between backticks
	link   func(label, address string) string // a link or a picture; the label is rewritten
}

var markdownInline = regexp.MustCompile("(?s)(```)(.*?)```|(``)(.*?)``|(`)([^`]*)`" +
	`|!?\[((?:\\.|[^\]\\])*)\]\(<?([^)>\s]*)>?(?:\s[^)]*)?\)` +
	`|\\([!-/:-@\[-` + "`" + `{-~])|\*{1,3}`)

// rewrite turns Markdown into the chat's markup.
func (u chatMarkup) rewrite(md string) string {
	var b strings.Builder
	last := 0
	for _, at := range markdownInline.FindAllStringSubmatchIndex(md, -1) {
		group := func(n int) string { return md[at[2*n]:at[2*n+1]] }
		b.WriteString(u.text(md[last:at[0]]))
		last = at[1]
		switch {
		case at[2] >= 0:
			b.WriteString(u.code(group(1), group(2)))
		case at[6] >= 0:
			b.WriteString(u.code("`", group(4)))
		case at[10] >= 0:
			b.WriteString(u.code("`", group(6)))
		case at[16] >= 0 && group(8) == "":
			b.WriteString(u.rewrite(group(7)))
		case at[16] >= 0:
			b.WriteString(u.link(u.rewrite(group(7)), group(8)))
		case at[18] >= 0:
			b.WriteString(u.quoted(group(9)))
		default:
			before, _ := utf8.DecodeLastRuneInString(md[:at[0]])
			after, _ := utf8.DecodeRuneInString(md[at[1]:])
			b.WriteString(u.emphasis(at[1]-at[0], before, after))
		}
	}
	b.WriteString(u.text(md[last:]))
	return b.String()
}

// emphasis is what so many asterisks between two characters stand for.
func (u chatMarkup) emphasis(asterisks int, before, after rune) string {
	space := func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) }
	switch {
	case space(before) && space(after):
		return u.quoted(strings.Repeat("*", asterisks))
	case asterisks == 1:
		return u.italic
	case asterisks == 2:
		return u.bold
	case space(after):
		return u.italic + u.bold
	}
	return u.bold + u.italic
}
