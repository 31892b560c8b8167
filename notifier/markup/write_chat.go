package markup

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// The dialects that are only written.
const (
	DialectGoogleChat Dialect = "googlechat" // see https://developers.google.com/workspace/chat/format-messages
	DialectWhatsApp   Dialect = "whatsapp"   // see https://faq.whatsapp.com/539178204879377
	DialectTelegram1  Dialect = "telegram1"  // Markdown; see https://core.telegram.org/bots/api#markdown-style
	DialectTelegram2  Dialect = "telegram2"  // MarkdownV2; see https://core.telegram.org/bots/api#markdownv2-style
)

// separator is put between two characters that would be markup together, where nothing can
// be escaped. It has no width.
const separator = "\u200b"

var (
	angleEscaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	chatAddress    = strings.NewReplacer("&", "&amp;", "|", "%7C", "<", "%3C", ">", "%3E", " ", "%20")
	codeEscaper    = strings.NewReplacer(`\`, `\\`, "`", "\\`")
	parenthesized  = strings.NewReplacer(`\`, `\\`, ")", `\)`)
	asIs           = func(s string) string { return s }
	angleOpen      = func(address string) string { return "<" + chatAddress.Replace(address) + "|" }
	angleClose     = func(string) string { return ">" }
	bracket        = func(string) string { return "[" }
	telegramSigns  = "\\_*[]()~`>#+-=|{}.!"
	telegramSigns1 = "`*_["
)

// syntaxes are how the dialects are written.
var syntaxes = map[Dialect]*syntax{
	DialectMattermost: markdownSyntax,
	DialectDiscord:    discordSyntax(),
	DialectSlack: {
		bold: "*", italic: "_", strike: "~", code: "`", lineBreak: "\n", edges: true, escape: escapeSlack, start: startSlack,
		verbatim: angleEscaper.Replace, open: angleOpen, close: angleClose,
	},
	DialectRocketChat: {
		bold: "*", italic: "_", strike: "~", code: "`", lineBreak: "\n", brackets: true,
		escape: func(out []byte, last rune, rest string) []byte { return escapeSigns(out, last, rest, "`*_~[\\") },
		start:  escapeMarkdownStart, verbatim: asIs, open: bracket, close: markdownSyntax.close,
	},
	DialectGoogleChat: {
		bold: "*", italic: "_", strike: "~", code: "`", lineBreak: "\n", edges: true, nesting: 2, escape: escapeGoogleChat,
		verbatim: angleEscaper.Replace, open: angleOpen, close: angleClose,
	},
	DialectWhatsApp: {
		bold: "*", italic: "_", strike: "~", code: fence, lineBreak: "\n", edges: true,
		escape:   func(out []byte, _ rune, rest string) []byte { return appendRune(out, rest) },
		verbatim: asIs, open: func(string) string { return "" }, close: func(address string) string { return " (" + address + ")" },
	},
	DialectTelegram1: {
		bold: "*", italic: "_", code: "`", lineBreak: "\n", escapesAddresses: true,
		escape:   func(out []byte, _ rune, rest string) []byte { return escapeAll(out, rest, telegramSigns1) },
		verbatim: asIs, open: bracket, close: func(address string) string { return "](" + parenthesized.Replace(address) + ")" },
	},
	DialectTelegram2: {
		bold: "*", italic: "_", strike: "~", code: "`", lineBreak: "\n", escapesAddresses: true,
		escape:   func(out []byte, _ rune, rest string) []byte { return escapeAll(out, rest, telegramSigns) },
		verbatim: codeEscaper.Replace, open: bracket,
		close: func(address string) string { return "](" + parenthesized.Replace(address) + ")" },
	},
}

// discordSyntax returns the syntax of Markdown without tables, in which a line break is a line
// break.
func discordSyntax() *syntax {
	s := *markdownSyntax
	s.tables, s.relative, s.lineBreak = false, false, "\n"
	s.start = func(line string) (string, int) {
		if strings.HasPrefix(line, "-#") { // a smaller text
			return `\`, 0
		}
		return escapeMarkdownStart(line)
	}
	return &s
}

// plainSyntaxes are the ways to write plain texts in dialects whose readers read more than the chat
// shows, and in which a backslash does not help. Readers leave out the separator.
var plainSyntaxes = map[Dialect]*syntax{
	DialectSlack:      plainSyntax(DialectSlack),
	DialectMattermost: plainSyntax(DialectMattermost),
	DialectRocketChat: plainSyntax(DialectRocketChat),
}

func plainSyntax(d Dialect) *syntax {
	s := *syntaxes[d]
	s.start = func(line string) (string, int) {
		if before, n := syntaxes[d].start(line); before != "" {
			return before, n
		}
		if chatHeading.MatchString(line) || chatItem.MatchString(line) || chatRow.MatchString(line) {
			return separator, 0
		}
		return "", 0
	}
	s.escape = func(out []byte, last rune, rest string) []byte {
		start := len(out)
		out = syntaxes[d].escape(out, last, rest)
		isMarkup := false
		switch rest[0] {
		case '`', '<': // of code and references
			isMarkup = true
		case ']': // of a link
			isMarkup = strings.HasPrefix(rest, "](")
		case ':': // of an emoji
			_, size := leadingEmoji(rest)
			isMarkup = size > 0
		}
		if isMarkup && len(out) == start+1 { // and not escaped yet
			out = append(out, separator...)
		}
		return out
	}
	return &s
}

// Write returns Markdown in the dialect. With references, it keeps those to people and
// channels in the dialect, which mention them.
func (d Dialect) Write(markdown string, references bool) string {
	s := syntaxes[d]
	if s == nil {
		return markdown
	}
	renderer := markdownRenderer
	if r := referenceRenderers[d]; r != nil && references {
		renderer = r
	}
	doc := documentOf(renderMarkdown(renderer, markdown))
	if doc == nil {
		doc = plainTree(markdown)
	}
	return s.write(doc)
}

// Escape writes a plain text in the dialect, so that [Dialect.Convert] makes the same text of it.
func (d Dialect) Escape(text string) string {
	s := cmp.Or(plainSyntaxes[d], syntaxes[d])
	if s == nil || strings.TrimSpace(text) == "" {
		return text
	}
	return s.write(plainTree(text))
}

// Link returns a link in the dialect, in which the text is written already.
func (d Dialect) Link(text, address string) string {
	s := syntaxes[d]
	text = OneLine(text)
	switch {
	case d == DialectSlack:
		text = strings.ReplaceAll(text, "|", "¦")
	case chats[d].escapes: // what looks like a link does not end the text
		text = linkEnd.ReplaceAllString(text, `$1\](`)
	}
	return s.open(address) + text + s.close(address)
}

var linkEnd = lazyregexp.New(`(^|[^\\])\]\(`)

// plainTree returns the tree of a plain text.
func plainTree(text string) *html.Node {
	doc := &html.Node{Type: html.DocumentNode}
	for i, line := range strings.Split(lineEnds.Replace(text), "\n") {
		if i > 0 {
			element(doc, atom.Br)
		}
		addText(doc, keepGaps("\n" + line)[1:])
	}
	return doc
}

// Contain returns a part of a text in the dialect so that it ends with the part: what
// would reach to the end of the text, as a quotation after >>> does, ends before.
func (d Dialect) Contain(part string) string {
	c := chats[d]
	if c == nil {
		return part
	}
	r := chatReader{chat: c, zone: time.UTC}
	var lines []string
	for text := part; text != ""; {
		line, rest, _ := strings.Cut(text, "\n")
		if length, toEnd := r.quoteMark(line); toEnd {
			mark := line[:length/3] + " "
			lines = append(lines, mark+strings.ReplaceAll(strings.TrimLeft(text[length:], " "), "\n", "\n"+mark))
			break
		}
		lines, text = append(lines, line), rest
	}
	part = strings.Join(lines, "\n")
	if strings.Count(part, fence)%2 == 0 {
		return part
	}
	last := strings.LastIndex(part, fence)
	switch {
	case c.openCode:
		return part + "\n" + fence
	case c.escapes:
		return part[:last] + "\\`\\`\\`" + part[last+len(fence):]
	}
	return part[:last] + "`" + separator + "`" + separator + "`" + part[last+len(fence):]
}

func appendRune(out []byte, rest string) []byte {
	_, n := utf8.DecodeRuneInString(rest)
	return append(out, rest[:n]...)
}

// escapeAll appends a character, with a backslash if it is one of signs.
func escapeAll(out []byte, rest, signs string) []byte {
	if strings.IndexByte(signs, rest[0]) >= 0 {
		out = append(out, '\\')
	}
	return appendRune(out, rest)
}

// escapeSigns appends a character, with a backslash if it is one of signs and could be
// markup.
func escapeSigns(out []byte, last rune, rest, signs string) []byte {
	if strings.IndexByte(signs, rest[0]) >= 0 && (strings.IndexByte("*_~", rest[0]) < 0 || isSign(last, rest)) {
		out = append(out, '\\')
	}
	return appendRune(out, rest)
}

// maxSigns is how far the end of emphasis is looked for, in bytes.
const maxSigns = 500

// isSign reports whether the sign that rest begins with could begin or end emphasis in a
// chat: at the edge of a word.
func isSign(last rune, rest string) bool {
	next := '\n'
	if len(rest) > 1 {
		next, _ = utf8.DecodeRuneInString(rest[1:])
	}
	opens, closes := !isWord(last) && !unicode.IsSpace(next), !unicode.IsSpace(last) && !isWord(next)
	return opens || closes
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// endsEmphasis reports whether a sign like the one that rest begins with could end emphasis
// that begins with it.
func endsEmphasis(rest string) bool {
	line, _, _ := strings.Cut(rest[:min(len(rest), maxSigns)], "\n")
	last := rune(rest[0])
	for i, r := range line {
		if i > 0 && r == rune(rest[0]) && !unicode.IsSpace(last) {
			if next, _ := utf8.DecodeRuneInString(line[i+1:]); i+1 == len(line) || !isWord(next) {
				return true
			}
		}
		last = r
	}
	return false
}

// escapeSlack appends a character of a text. Slack has no escapes for emphasis, so a sign
// that would begin some is separated from what follows.
func escapeSlack(out []byte, last rune, rest string) []byte {
	switch rest[0] {
	case '&', '<', '>':
		return append(out, angleEscaper.Replace(rest[:1])...)
	case '*', '_', '~':
		next := '\n'
		if len(rest) > 1 {
			next, _ = utf8.DecodeRuneInString(rest[1:])
		}
		if !isWord(last) && !unicode.IsSpace(next) && endsEmphasis(rest) {
			return append(append(out, rest[0]), separator...)
		}
	}
	return appendRune(out, rest)
}

// startSlack separates what would begin a quotation from the beginning of its line.
func startSlack(line string) (string, int) {
	if line[0] == '>' {
		return separator, 0
	}
	return "", 0
}

// escapeGoogleChat appends a character of a text.
func escapeGoogleChat(out []byte, last rune, rest string) []byte {
	switch rest[0] {
	case '&', '<', '>':
		return append(out, angleEscaper.Replace(rest[:1])...)
	case '*', '_', '~', '`':
		if rest[0] == '`' || isSign(last, rest) {
			out = append(out, '\\')
		}
	}
	return appendRune(out, rest)
}
