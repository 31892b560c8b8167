package markup

import (
	"slices"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdownRenderer lets HTML within the Markdown through: whoever may send a
// message may send it as HTML in the first place.
var markdownRenderer = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithRendererOptions(goldmarkhtml.WithHardWraps(), goldmarkhtml.WithXHTML(), goldmarkhtml.WithUnsafe()),
)

var markdownWriter = newMarkdownWriter()

func newMarkdownWriter() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(
			commonmark.WithHorizontalRule("---"),
			commonmark.WithListEndComment(false),
			commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip),
			commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip),
		),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
	))
	c.Register.TextTransformer(escapeAngles, converter.PriorityLate)
	return c
}

// escapeAngles writes what the library has as character references with a
// backslash instead, and only where it would be markup: chat programs know
// little of HTML.
func escapeAngles(_ converter.Context, text string) string {
	text = strings.ReplaceAll(text, "&lt;", `\<`)
	if rest := strings.TrimLeft(text, " "); strings.HasPrefix(rest, "&gt;") {
		text = `\>` + rest[len("&gt;"):]
	}
	return strings.ReplaceAll(text, "&gt;", ">")
}

func markdownToHTML(markdown string) string {
	if !simpleMarkdown(markdown) {
		return textToHTML(markdown)
	}
	source := []byte(lineEnds.Replace(markdown))
	doc := markdownRenderer.Parser().Parse(text.NewReader(source))
	if addresses(doc) > max(minAddresses, maxGrowth*len(source)) {
		return textToHTML(markdown)
	}
	var b strings.Builder
	if err := markdownRenderer.Renderer().Render(&b, source, doc); err != nil {
		return textToHTML(markdown)
	}
	return strings.TrimRight(b.String(), "\n")
}

// addresses is how long the addresses and titles of links and pictures are in
// all. Those that are defined once may be referred to any number of times.
func addresses(doc ast.Node) (n int) {
	// Its error would be that of the function.
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Link:
			n += len(node.Destination) + len(node.Title)
		case *ast.Image:
			n += len(node.Destination) + len(node.Title)
		}
		return ast.WalkContinue, nil
	})
	return n / 2 // each is entered and left
}

func htmlToMarkdown(text string) string {
	if len(text) > maxElaborate {
		return htmlToText(text)
	}
	doc := htmlTree(text)
	if doc == nil || !simpleHTML(doc, len(text)) {
		return htmlToText(text)
	}
	defuseLinks(doc)
	md, err := markdownWriter.ConvertNode(doc)
	if err != nil {
		return htmlToText(text)
	}
	return string(md)
}

// Bounds for the elaborate conversions. The libraries are quadratic in some
// constructs, and tables and links can be written much shorter than they come
// out. No message that somebody wrote to be read comes near these bounds.
const (
	maxElaborate = 1 << 20 // bytes of text
	maxNesting   = 100     // list items and quotations that one line of Markdown opens
	maxCells     = 1 << 16 // of tables, absent ones included
	maxGrowth    = 4       // cells, and bytes of addresses, for each byte of text
	minAddresses = 1 << 16 // bytes of addresses that may be however short the text is
	maxColumns   = 200     // of an HTML table
	maxSpan      = 20      // rows or columns that a cell of an HTML table covers
	maxStart     = 999     // where the numbers of an HTML list begin
	maxWork      = 1 << 30 // delimiters times the bytes that may be searched for their partners
	maxFound     = 16      // lines that are kept while the end of code or a tag is looked for, for each byte of text
	maxOpening   = 64      // brackets for each byte of HTML that may be searched for their partners
)

// simpleMarkdown reports whether text can be rendered in a time and a space
// that are in proportion to its length.
func simpleMarkdown(text string) bool {
	if len(text) > maxElaborate {
		return false
	}
	// A block ends at a blank line or where an item or a heading begins:
	// neither delimiters nor tables reach beyond it.
	var size, delimiters, searches, lines, columns, work, found, cells int
	for line := range strings.Lines(text) {
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
				delimiters += 8 // dearer than the others by about that much
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

// beginsBlock reports whether a line is blank, or a list's item or a heading
// that ends the block before it.
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
	// What is indented by more, or is a mark alone, may go on with a block.
	return len(line)-len(rest) <= 3 && mark <= 6 && strings.HasPrefix(rest[mark:], " ") && strings.TrimSpace(rest[mark:]) != ""
}

// markdownNesting is about how many blocks within each other a line opens.
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

// simpleHTML reports whether the tree of a document of that length can be
// written as Markdown in a time and a space that are in proportion to it. It
// narrows cells that are said to cover more than a reader could see, and lists
// whose numbers are longer than anybody counts.
func simpleHTML(doc *html.Node, length int) bool {
	var open, work, cells int
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode:
			// The next closing bracket is looked for behind each opening one.
			for i := range len(n.Data) {
				switch n.Data[i] {
				case '[':
					open++
				case ']':
					open = 0
				}
				work += open
			}
		case n.DataAtom == atom.Ol:
			if i := attr(n, "start"); i >= 0 {
				if start, err := strconv.Atoi(n.Attr[i].Val); err == nil && (start < 0 || start > maxStart) {
					n.Attr[i].Val = "1"
				}
			}
		case n.DataAtom == atom.Table:
			rows, columns := grid(n)
			if columns > maxColumns {
				return false
			}
			cells += rows * columns
		}
	}
	return work <= maxOpening*length && cells <= min(maxCells, maxGrowth*length)
}

// grid is how many rows and columns a table has, those of tables within it
// and the two that make it one in Markdown included.
func grid(table *html.Node) (rows, columns int) {
	var claimed [maxSpan + 1]int // columns of this row and the next that cells above cover
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

// span is how many rows or columns a cell covers.
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

// attr is where an element has an attribute, or -1.
func attr(n *html.Node, key string) int {
	return slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}
