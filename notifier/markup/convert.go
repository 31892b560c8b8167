package markup

import (
	"errors"
	"html"
	"strings"
)

// Convert converts text from one format to another. The empty format means
// [Text].
//
// Plain text and Markdown are converted to each other without a change:
// Markdown is readable as it is, and clients often send Markdown as plain text
// to destinations that render it. The lines, indentation and columns of plain
// text are kept in HTML. Plain text that is made from HTML has the address of each
// link in parentheses after its text. Links to scripts and embedded data are
// removed.
//
// The time and the length of the result are bounded by the length of text. If
// Markdown is too long or too complex, it is converted to HTML as plain text
// is; if HTML is, it is converted to plain text instead of Markdown.
func Convert(text string, from, to Format) string {
	switch {
	case from == to:
	case to == HTML && from == Markdown:
		return markdownToHTML(text)
	case to == HTML:
		return textToHTML(text)
	case from == HTML && to == Markdown:
		if md, ok := htmlToMarkdown(text); ok {
			return md
		}
		return htmlToText(text)
	case from == HTML:
		return htmlToText(text)
	}
	return text
}

// lineEnds replaces the three line endings by a line feed. HTML treats a
// carriage return as a space.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

var tabsAndLines = strings.NewReplacer("\t", "&emsp;", "\n", "<br/>")

// textToHTML escapes text and keeps its lines, indentation and columns: a space
// at the beginning of a line, and all but the last of several spaces, become
// no-break spaces.
func textToHTML(text string) string {
	return tabsAndLines.Replace(html.EscapeString(keepGaps(lineEnds.Replace(text))))
}

const noBreakSpace = "\u00a0"

func keepGaps(text string) string {
	if !strings.Contains(text, "  ") && !strings.Contains(text, "\n ") && !strings.HasPrefix(text, " ") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == ' ' && (i == 0 || text[i-1] == '\n' || i+1 < len(text) && text[i+1] == ' ') {
			b.WriteString(noBreakSpace)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Format is the markup language of a text.
type Format string

// The formats of a text. The zero Format counts as [Text].
const (
	Text     Format = "text"
	Markdown Format = "markdown"
	HTML     Format = "html"
)

// ParseFormat returns the format with the given name, in any case and with
// white space around it. The empty name means [Text]. An error is returned if
// there is no such format; it lists the names.
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimSpace(name))); f {
	case "":
		return Text, nil
	case Text, Markdown, HTML:
		return f, nil
	}
	return "", errors.New("unknown format; use text, markdown or html")
}
