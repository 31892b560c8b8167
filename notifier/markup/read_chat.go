package markup

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// A chat is the grammar of a chat's texts, where chats differ.
type chat struct {
	refers    *lazyregexp.Regexp                               // matches a reference
	words     func(match []string, zone *time.Location) string // of a reference
	slack     bool                                             // <address|text>, and one sign for bold and struck out text
	entities  bool                                             // &lt;, &gt; and &amp; stand for <, > and &
	escapes   bool                                             // a backslash before a sign makes it text; else code has entities, too
	names     bool                                             // :smile: is an emoji
	languages bool                                             // the line of a fence may name a language
	headings  [2]int                                           // least and greatest level of headings
	rest      bool                                             // >>> begins a quotation that ends with the text
	spoilers  bool                                             // ||text|| is hidden until somebody asks for it
	underline bool                                             // __text__ is underlined
	openCode  bool                                             // code without an end reaches to the end of the text
	tables    bool
}

// chats are the grammars of the dialects that are read. Programs that write for Mattermost use
// Slack's dialect, too. So it also has **bold**, [text](address) and tables, which mean nothing
// in Slack.
var chats = map[Dialect]*chat{
	DialectSlack: {
		refers: slackReference, words: slackWords, headings: [2]int{2, 6},
		slack: true, entities: true, names: true, rest: true, tables: true,
	},
	DialectRocketChat: {
		refers: slackReference, words: slackWords, headings: [2]int{1, 4},
		slack: true, escapes: true, names: true, languages: true,
	},
	DialectMattermost: {
		refers: slackReference, words: slackWords, headings: [2]int{1, 6},
		entities: true, escapes: true, names: true, languages: true, openCode: true, tables: true,
	},
	DialectDiscord: {
		refers: discordReference, words: discordWords, headings: [2]int{1, 3},
		escapes: true, languages: true, rest: true, spoilers: true, underline: true,
	},
}

// maxBlockDepth bounds nested lists and quotations. Deeper ones are paragraphs.
const maxBlockDepth = 6

// chatReader reads one text of a chat.
type chatReader struct {
	*chat
	zone  *time.Location
	depth int
}

// read returns the tree of a text in a chat's dialect. Nothing in the text is HTML: the tree has
// only words and the elements of the chat's markup.
func (d Dialect) read(text string, zone *time.Location) *html.Node {
	doc := &html.Node{Type: html.DocumentNode}
	r := &chatReader{chat: chats[d], zone: zone}
	r.blocks(doc, strings.ReplaceAll(lineEnds.Replace(text), "\x00", ""))
	return doc
}

func element(parent *html.Node, tag atom.Atom) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: tag.String(), DataAtom: tag}
	parent.AppendChild(n)
	return n
}

func addText(parent *html.Node, text string) {
	if last := parent.LastChild; last != nil && last.Type == html.TextNode {
		last.Data += text
		return
	}
	if text != "" {
		parent.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	}
}

var (
	chatHeading = lazyregexp.New(`^(#{1,6}|-#)[ \t]+(\S.*)$`)
	chatItem    = lazyregexp.New(`^([ \t]*)(?:[-*+]|([0-9]{1,9})[.)])[ \t]+(\S.*)$`)
	chatRow     = lazyregexp.New(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
)

// blocks appends the blocks of a text to parent.
func (r *chatReader) blocks(parent *html.Node, text string) {
	var lines []string // of a paragraph
	end := func() {
		for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
			lines = lines[1:]
		}
		if joined := strings.TrimRight(strings.Join(lines, "\n"), " \t\n"); joined != "" {
			r.paragraph(parent, joined)
		}
		lines = lines[:0]
	}
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		if length, _ := r.quoteMark(line); length > 0 && r.depth < maxBlockDepth {
			end()
			text = r.quote(parent, text)
			continue
		}
		if m := chatHeading.FindStringSubmatch(line); m != nil && !strings.Contains(line, fence) && r.isHeading(m[1]) {
			end()
			r.heading(parent, m[1], m[2])
			text = rest
			continue
		}
		if chatItem.MatchString(line) && r.depth < maxBlockDepth {
			end()
			text = r.list(parent, text)
			continue
		}
		if r.tables && len(lines) == 0 && strings.Contains(line, "|") && !strings.Contains(line, fence) {
			if after, ok := r.table(parent, line, rest); ok {
				text = after
				continue
			}
		}
		if before, content, language, after, ok := r.code(text); ok {
			lines = append(lines, before)
			end()
			pre(parent, content, language)
			text = strings.TrimPrefix(strings.TrimLeft(after, " \t"), "\n")
			continue
		}
		if strings.TrimSpace(line) == "" {
			end()
		} else {
			lines = append(lines, line)
		}
		text = rest
	}
	end()
}

// isHeading reports whether a mark begins a heading, or a smaller text.
func (r *chatReader) isHeading(mark string) bool {
	if mark == "-#" {
		return r.underline // Discord's
	}
	return r.headings[0] <= len(mark) && len(mark) <= r.headings[1]
}

func (r *chatReader) heading(parent *html.Node, mark, text string) {
	if mark == "-#" {
		r.inline(element(element(parent, atom.P), atom.Small), text)
		return
	}
	if r.escapes { // a heading of Markdown may have marks at its end
		if cut := strings.TrimRight(text, "# \t"); cut != "" && len(cut) < len(text) && text[len(cut)] != '#' {
			text = cut
		}
	}
	tags := [...]atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}
	r.inline(element(parent, tags[len(mark)-1]), text)
}

// paragraph appends a paragraph whose lines stay lines.
func (r *chatReader) paragraph(parent *html.Node, text string) {
	p := parent
	if parent.DataAtom != atom.Li {
		p = element(parent, atom.P)
	}
	r.inline(p, text)
}

const fence = "```"

// code finds code that begins in the first line of a text, and returns what is before it,
// its content and language, and what is after it.
func (r *chatReader) code(text string) (before, content, language, after string, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	start := r.fenceIndex(line)
	if start < 0 {
		return "", "", "", "", false
	}
	width := start + len(text[start:]) - len(strings.TrimLeft(text[start:], "`")) - start
	rest := text[start+width:]
	end := strings.Index(rest, text[start:start+width])
	switch {
	case end >= 0:
		content, after = rest[:end], strings.TrimLeft(rest[end:], "`")
	case r.openCode && strings.TrimSpace(text[:start]) == "":
		content = rest
	default:
		return "", "", "", "", false
	}
	if strings.TrimSpace(content) == "" {
		return "", "", "", "", false
	}
	if first, more, found := strings.Cut(content, "\n"); found && r.languages && isLanguage(first) && strings.TrimSpace(more) != "" {
		language, content = strings.TrimSpace(first), more
	} else if strings.TrimSpace(first) == "" {
		content = more
	}
	if r.entities && !r.escapes {
		content = slackEntities.Replace(content)
	}
	return text[:start], strings.TrimRight(content, " \t\n"), language, after, true
}

// fenceIndex returns the index of the first fence of a line that is not escaped, or -1.
func (r *chatReader) fenceIndex(line string) int {
	i := strings.Index(line, fence)
	if i > 0 && line[i-1] == '\\' && r.escapes {
		return -1
	}
	return i
}

// isLanguage reports whether the rest of the line of a fence names a language. Programs
// write a text there, too, with spaces or capital letters.
func isLanguage(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+#.-_") == ""
}

func pre(parent *html.Node, content, language string) {
	code := element(element(parent, atom.Pre), atom.Code)
	if language != "" {
		code.Attr = []html.Attribute{{Key: "class", Val: "language-" + language}}
	}
	addText(code, content)
}

// quoteMark returns the length of the mark that makes a line a quotation, and reports whether
// the quotation ends with the text. The length is 0 if the line is no quotation.
func (r *chatReader) quoteMark(line string) (length int, toEnd bool) {
	sign := ">"
	if !r.escapes && strings.HasPrefix(line, "&gt;") {
		sign = "&gt;"
	}
	switch {
	case !strings.HasPrefix(line, sign):
		return 0, false
	case r.rest && strings.HasPrefix(line, strings.Repeat(sign, 3)) && (!r.escapes || strings.HasPrefix(line, ">>> ")):
		return 3 * len(sign), true
	case r.underline && !strings.HasPrefix(line, "> "): // Discord wants a space
		return 0, false
	}
	return len(sign), false
}

// quote appends the quotation that a text begins with, and returns what is after it.
func (r *chatReader) quote(parent *html.Node, text string) string {
	var lines []string
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		length, toEnd := r.quoteMark(line)
		if length == 0 || toEnd && lines != nil {
			break
		}
		if toEnd {
			line, rest = text, ""
		}
		lines = append(lines, strings.TrimPrefix(line[length:], " "))
		text = rest
	}
	r.depth++
	r.blocks(element(parent, atom.Blockquote), strings.Join(lines, "\n"))
	r.depth--
	return text
}

// list appends the list that a text begins with, and returns what is after it.
func (r *chatReader) list(parent *html.Node, text string) string {
	indent, next := -1, 0
	var list *html.Node
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		m := chatItem.FindStringSubmatch(line)
		if m == nil {
			break
		}
		at := width(m[1])
		if indent < 0 {
			indent = at
		}
		if at < indent {
			break
		}
		tag := atom.Ul
		if m[2] != "" {
			tag = atom.Ol
		}
		if list == nil || list.DataAtom != tag {
			list = element(parent, tag)
			next = 1
		}
		item := element(list, atom.Li)
		if tag == atom.Ol {
			number, _ := strconv.Atoi(m[2])
			switch {
			case number == next:
			case item.PrevSibling == nil:
				list.Attr = []html.Attribute{{Key: "start", Val: strconv.Itoa(number)}}
			default:
				item.Attr = []html.Attribute{{Key: "value", Val: strconv.Itoa(number)}}
			}
			next = number + 1
		}
		content := []string{m[3]}
		text = rest
		for text != "" { // lines with more indentation belong to the item
			line, rest, _ = strings.Cut(text, "\n")
			spaces := len(line) - len(strings.TrimLeft(line, " \t"))
			if strings.TrimSpace(line) == "" || width(line[:spaces]) < at+2 {
				break
			}
			content = append(content, outdent(line, at+2))
			text = rest
		}
		if i := strings.Index(m[3], fence); i >= 0 && len(content) == 1 && !strings.Contains(m[3][i+len(fence):], fence) {
			if before, code, language, after, ok := r.code(m[3] + "\n" + text); ok { // the code has no indentation
				r.inline(item, strings.TrimSpace(before))
				pre(item, code, language)
				text = strings.TrimPrefix(strings.TrimLeft(after, " \t"), "\n")
				continue
			}
		}
		r.depth++
		r.blocks(item, strings.Join(content, "\n"))
		r.depth--
	}
	return text
}

// width returns the width of white space.
func width(space string) int { return len(strings.ReplaceAll(space, "\t", "    ")) }

// outdent returns a line without up to n columns of white space.
func outdent(line string, n int) string {
	for n > 0 && line != "" {
		switch line[0] {
		case ' ':
			n--
		case '\t':
			n -= 4
		default:
			return line
		}
		line = line[1:]
	}
	return line
}

// maxTableColumns bounds the cells of a row.
const maxTableColumns = 50

// table appends the table whose first line is given, if the next line says that it is
// one, and returns what is after it.
func (r *chatReader) table(parent *html.Node, line, text string) (string, bool) {
	second, rest, _ := strings.Cut(text, "\n")
	columns := len(tableCells(line))
	if !strings.Contains(second, "-") || !strings.Contains(second, "|") || !chatRow.MatchString(second) ||
		len(tableCells(second)) != columns || columns > maxTableColumns {
		return "", false
	}
	table := element(parent, atom.Table)
	r.row(element(table, atom.Thead), line, atom.Th)
	body := element(table, atom.Tbody)
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if !strings.Contains(line, "|") || strings.Contains(line, fence) {
			break
		}
		r.row(body, line, atom.Td)
		rest = after
	}
	return rest, true
}

func (r *chatReader) row(parent *html.Node, line string, tag atom.Atom) {
	row := element(parent, atom.Tr)
	for _, cell := range tableCells(line) {
		r.inline(element(row, tag), strings.TrimSpace(strings.ReplaceAll(cell, `\|`, "|")))
	}
}

// tableCells returns the cells of a line.
func tableCells(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var cells []string
	start := 0
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			cells = append(cells, line[start:i])
			start = i + 1
		}
	}
	return append(cells, line[start:])
}
