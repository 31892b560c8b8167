package markup

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdownRenderer keeps HTML within Markdown. A client may send HTML anyway.
var markdownRenderer = newMarkdownRenderer(plainAddress{})

func newMarkdownRenderer(inlines ...parser.InlineParser) goldmark.Markdown {
	var prioritized []util.PrioritizedValue
	for _, p := range inlines {
		prioritized = append(prioritized, util.Prioritized(p, 50)) // before Markdown's own parsers
	}
	return goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(
			parser.WithInlineParsers(append(prioritized, util.Prioritized(strikethrough{}, 500))...),
		),
		goldmark.WithRendererOptions(
			goldmarkhtml.WithHardWraps(), goldmarkhtml.WithXHTML(), goldmarkhtml.WithUnsafe(),
			renderer.WithNodeRenderers(util.Prioritized(markdownNodes{}, 500)),
		),
	)
}

func markdownToHTML(markdown string) string { return renderMarkdown(markdownRenderer, markdown) }

func renderMarkdown(r goldmark.Markdown, markdown string) string {
	markdown = lineEnds.Replace(markdown)
	if !isSimpleMarkdown(markdown) {
		return textToHTML(markdown)
	}
	source := []byte(markdown)
	doc := r.Parser().Parse(text.NewReader(source))
	joinTexts(doc, source)
	if addressBytes(doc) > max(minAddresses, maxGrowth*len(source)) {
		return textToHTML(markdown)
	}
	var b strings.Builder
	if err := r.Renderer().Render(&b, source, doc); err != nil {
		return textToHTML(markdown)
	}
	return strings.TrimRight(b.String(), "\n")
}

// joinTexts joins the texts that follow each other. The parser divides a text at each sign
// that might begin something else, also within &lt; and after a backslash.
func joinTexts(n ast.Node, source []byte) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		for ok && c.NextSibling() != nil && !t.SoftLineBreak() && !t.HardLineBreak() && t.Merge(c.NextSibling(), source) {
			n.RemoveChild(n, c.NextSibling())
		}
		joinTexts(c, source)
	}
}

// addressBytes returns the total length of the addresses and titles of links
// and images. A short text can refer to one definition many times.
func addressBytes(doc ast.Node) (n int) {
	// Walk returns only errors of the callback, which returns none.
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Link:
			n += len(node.Destination) + len(node.Title)
		case *ast.Image:
			n += len(node.Destination) + len(node.Title)
		}
		return ast.WalkContinue, nil
	})
	return n / 2 // Walk visits each node twice
}

// htmlToMarkdown returns false if text is too long or too complex.
func htmlToMarkdown(text string) (string, bool) {
	doc := documentOf(text)
	if doc == nil {
		return "", false
	}
	return writeMarkdown(doc), true
}

// documentOf returns the tree of HTML to write from, or nil if text is too long or too
// complex.
func documentOf(text string) *html.Node {
	if len(text) > maxConvert {
		return nil
	}
	doc := htmlTree(text)
	if doc == nil || !limitHTML(doc, len(text)) {
		return nil
	}
	removeUnsafeLinks(doc)
	unwrapLayout(doc)
	loosenSpaces(doc)
	return doc
}

// Limits of what the libraries for Markdown convert. They take quadratic time
// for some constructs, and the result of tables and links can be much longer
// than the text. Messages that people write stay far below these limits.
const (
	maxConvert   = 1 << 20 // bytes of text
	maxNesting   = 100     // list items and quotations that one line of Markdown opens
	maxCells     = 1 << 16 // table cells, missing ones included
	maxGrowth    = 4       // table cells, and bytes of addresses, per byte of text
	minAddresses = 1 << 16 // bytes of addresses that any text may have
	maxColumns   = 200     // of an HTML table
	maxSpan      = 20      // rows or columns that one cell of an HTML table spans
	maxStart     = 999     // first number of an HTML list
	maxWork      = 1 << 30 // delimiters times bytes that may be searched for the closing ones
	maxFound     = 16      // lines searched for the end of code or of a tag, per byte of text
)

// isSimpleMarkdown reports whether text can be rendered in time and space
// proportional to its length.
func isSimpleMarkdown(text string) bool {
	if len(text) > maxConvert {
		return false
	}
	// A block ends at a blank line, a list item or a heading. Delimiters and
	// tables do not extend beyond their block. Fenced code has none.
	fences, code := true, ""
	var size, delimiters, searches, lines, columns, work, found, cells int
	for line := range strings.Lines(text) {
		if code != "" {
			if code = openCode(code, line); code != "" {
				continue
			}
			size, delimiters, searches, lines, columns = 0, 0, 0, 0, 0
			continue
		}
		fences = fences && !strings.HasPrefix(strings.TrimLeft(line, " "), "<") // in HTML, a fence is text
		if fences {
			code = openCode("", line)
		}
		if markdownNesting(line) > maxNesting {
			return false
		}
		if beginsBlock(line) {
			size, delimiters, searches, lines, columns = 0, 0, 0, 0, 0
		}
		work -= size * delimiters
		found -= lines * searches
		cells -= lines * columns
		size += len(line)
		lines++
		columns = max(columns, strings.Count(line, "|")+1)
		var last byte
		for _, c := range []byte(line) {
			switch c {
			case '[', ']':
				delimiters += 8 // they cost about 8 times as much as other delimiters
			case '<':
				delimiters++
				searches++
			case '`':
				delimiters++
				if last != '`' {
					searches++
				}
			case '*', '_':
				delimiters++
			}
			last = c
		}
		work += size * delimiters
		found += lines * searches
		cells += lines * columns
		if work > maxWork || cells > maxCells {
			return false
		}
	}
	return cells <= maxGrowth*len(text) && found <= maxFound*len(text)
}

// openCode returns the fence of the code that is open after a line; code is the fence that is
// open before it. Only a fence without indentation counts, so that it cannot be within a list.
func openCode(code, line string) string {
	rest := line
	if code != "" {
		if rest = strings.TrimLeft(line, " "); len(line)-len(rest) > 3 {
			return code
		}
	}
	run := rest[:len(rest)-len(strings.TrimLeft(rest, "`"))]
	if run == "" {
		run = rest[:len(rest)-len(strings.TrimLeft(rest, "~"))]
	}
	info := rest[len(run):]
	switch {
	case code != "" && strings.HasPrefix(run, code) && strings.TrimSpace(info) == "":
		return ""
	case code == "" && len(run) >= len(fence) && !strings.Contains(info, "`"):
		return run
	}
	return code
}

// beginsBlock reports whether line ends the block before it: it is blank, a
// list item or a heading.
func beginsBlock(line string) bool {
	rest := strings.TrimLeft(line, " ")
	if strings.TrimSpace(rest) == "" {
		return true
	}
	mark := 1
	switch rest[0] {
	case '-', '+', '*':
	case '#':
		mark = len(rest) - len(strings.TrimLeft(rest, "#"))
	default:
		return false
	}
	// A line with more indentation, or with a mark only, may continue a block.
	return len(line)-len(rest) <= 3 && mark <= 6 && strings.HasPrefix(rest[mark:], " ") && strings.TrimSpace(rest[mark:]) != ""
}

// markdownNesting returns about how many nested blocks a line opens.
func markdownNesting(line string) int {
	depth, spaces := 0, 0
	for i := range len(line) {
		next := byte('\n')
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch c := line[i]; {
		case c == ' ':
			spaces++
		case c == '\t':
			spaces += 4
		case c == '>':
			depth++
		case strings.IndexByte("-+*.)", c) >= 0 && strings.IndexByte(" \t\r\n", next) >= 0:
			depth++
		case strings.IndexByte("-+*0123456789", c) >= 0:
		default:
			return depth + spaces/2
		}
	}
	return depth + spaces/2
}

// limitHTML reports whether doc can be converted to Markdown in time and space
// proportional to length, the length of the HTML. It resets spans of cells and
// first numbers of lists that are too large.
func limitHTML(doc *html.Node, length int) bool {
	cells := 0
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Ol:
			if i := attr(n, "start"); i >= 0 {
				if start, err := strconv.Atoi(n.Attr[i].Val); err == nil && (start < 0 || start > maxStart) {
					n.Attr[i].Val = "1"
				}
			}
		case atom.Li:
			if i := attr(n, "value"); i >= 0 {
				if value, err := strconv.Atoi(n.Attr[i].Val); err != nil || value < 0 || value > maxStart {
					n.Attr = slices.Delete(n.Attr, i, i+1)
				}
			}
		case atom.Table:
			rows, columns := tableSize(n)
			if columns > maxColumns {
				return false
			}
			cells += rows * columns
		}
	}
	return cells <= min(maxCells, maxGrowth*length)
}

// tableSize returns how many rows and columns table has. It counts the rows and columns of nested
// tables, and the two that a table has in Markdown.
func tableSize(table *html.Node) (rows, columns int) {
	var claimed [maxSpan + 1]int // columns of this row and later ones that cells above span
	row := 0
	rows = 2
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Tr:
			rows++
			copy(claimed[:], claimed[1:])
			row = claimed[0]
		case atom.Td, atom.Th:
			width, height := span(n, "colspan"), span(n, "rowspan")
			row += width
			for i := range height {
				claimed[i] += width
			}
		}
		columns = max(columns, row)
	}
	for _, n := range claimed[1:] {
		if n > 0 {
			rows++
		}
	}
	return rows, columns
}

// span returns how many rows or columns a cell spans.
func span(cell *html.Node, key string) int {
	i := attr(cell, key)
	if i < 0 {
		return 1
	}
	n, err := strconv.Atoi(cell.Attr[i].Val)
	if err != nil || n < 1 || n > maxSpan {
		n, cell.Attr[i].Val = 1, "1"
	}
	return n
}

// attr returns the index of an attribute of n, or -1.
func attr(n *html.Node, key string) int {
	return slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}
