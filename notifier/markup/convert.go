package markup

import (
	"html"
	"strings"
)

// Convert writes a text that is in one format in another.
//
// Text and Markdown pass into each other unchanged, on purpose: Markdown is
// made to be read as it stands, and what comes as text is often meant for a
// destination that renders Markdown. An empty format is [Text].
//
// Time and size are bounded by the length of the text. Where Markdown is too
// long or too intricate for that, it becomes HTML as plain text does, and HTML
// in place of Markdown becomes plain text.
func Convert(text string, from, to Format) string {
	switch {
	case from == to:
	case to == HTML && from == Markdown:
		return markdownToHTML(text)
	case to == HTML:
		return textToHTML(text)
	case from == HTML && to == Markdown:
		return htmlToMarkdown(text)
	case from == HTML:
		return htmlToText(text)
	}
	return text
}

// lineEnds makes one sign of the three that end a line. In HTML a carriage
// return is a space.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

var tabsAndLines = strings.NewReplacer("\t", "&emsp;", "\n", "<br/>")

// textToHTML escapes what HTML would read as markup, and keeps the lines, with
// how they are indented and the gaps between columns: of several spaces all
// but the last become no-break spaces, and so does one that begins a line.
func textToHTML(text string) string {
	return tabsAndLines.Replace(html.EscapeString(hardenGaps(lineEnds.Replace(text))))
}

const hardSpace = "\u00a0"

func hardenGaps(text string) string {
	if !strings.Contains(text, "  ") && !strings.Contains(text, "\n ") && !strings.HasPrefix(text, " ") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == ' ' && (i == 0 || text[i-1] == '\n' || i+1 < len(text) && text[i+1] == ' ') {
			b.WriteString(hardSpace)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var hardSpaces = strings.NewReplacer(" ", "&nbsp;", "&#34;", "&quot;", "&#39;", "&apos;")

// TextToHTMLHardSpaces is textToHTML for services of [Schema.HardSpaces].
func TextToHTMLHardSpaces(text string) string {
	return hardSpaces.Replace(tabsAndLines.Replace(html.EscapeString(lineEnds.Replace(text))))
}
