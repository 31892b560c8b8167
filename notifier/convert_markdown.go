package notifier

import (
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
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

func markdownToHTML(text string) string {
	if !simpleMarkdown(text) {
		return textToHTML(text)
	}
	var b strings.Builder
	if err := markdownRenderer.Convert([]byte(text), &b); err != nil {
		return textToHTML(text)
	}
	return strings.TrimRight(b.String(), "\n")
}

func htmlToMarkdown(text string) string {
	if len(text) > maxElaborate {
		return htmlToText(text)
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil || !simpleHTML(doc) {
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
// constructs, and tables can be written much shorter than they come out. No
// message that somebody wrote to be read comes near these bounds.
const (
	maxElaborate = 1 << 20 // bytes of text
	maxNesting   = 100     // list items and quotations that one line opens
	maxCells     = 1 << 16 // of tables, absent ones included
	maxSpan      = 20      // rows or columns that a cell of an HTML table covers
	maxWork      = 1 << 30 // delimiters times the bytes that may be searched for their partners
)

// simpleMarkdown reports whether text can be rendered in a time and a space
// that are in proportion to its length.
func simpleMarkdown(text string) bool {
	if len(text) > maxElaborate {
		return false
	}
	// A block ends at a blank line: neither delimiters nor tables reach
	// beyond it.
	var size, delimiters, lines, columns, work, cells int
	for line := range strings.Lines(text) {
		if markdownNesting(line) > maxNesting {
			return false
		}
		if strings.TrimSpace(line) == "" {
			size, delimiters, lines, columns = 0, 0, 0, 0
			continue
		}
		work -= size * delimiters
		cells -= lines * columns
		size += len(line)
		lines++
		columns = max(columns, strings.Count(line, "|")+1)
		for _, c := range []byte(line) {
			switch c {
			case '[', ']':
				delimiters += 8 // dearer than the others by about that much
			case '*', '_', '`', '<':
				delimiters++
			}
		}
		work += size * delimiters
		cells += lines * columns
		if work > maxWork || cells > maxCells {
			return false
		}
	}
	return true
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

// simpleHTML reports whether a document can be written as Markdown in a time
// and a space that are in proportion to its length. It narrows cells that are
// said to cover more than a reader could see.
func simpleHTML(doc *html.Node) bool {
	var size, brackets, rows, row, widest int
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode:
			size += len(n.Data)
			brackets += strings.Count(n.Data, "[")
		case n.DataAtom == atom.Tr:
			rows++
			row = 0
		case n.DataAtom == atom.Td, n.DataAtom == atom.Th:
			row += narrow(n)
			widest = max(widest, row)
		}
	}
	return size*brackets <= maxWork && rows*widest <= maxCells
}

// narrow limits what a cell covers, and returns in how many columns.
func narrow(cell *html.Node) int {
	columns := 1
	for i, a := range cell.Attr {
		if a.Key != "colspan" && a.Key != "rowspan" {
			continue
		}
		n := 0
		for _, c := range []byte(strings.TrimSpace(a.Val)) {
			if c < '0' || c > '9' || n > maxSpan {
				break
			}
			n = 10*n + int(c-'0')
		}
		if n > maxSpan {
			cell.Attr[i].Val = "1"
		} else if a.Key == "colspan" {
			columns = max(n, 1)
		}
	}
	return columns
}
