package markup

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// strikethrough reads text between two tildes as struck out. A single tilde is a character: people
// write ~5 and ~/bin.
type strikethrough struct{}

func (strikethrough) Trigger() []byte { return []byte{'~'} }

func (s strikethrough) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, s)
	if d == nil || d.OriginalLength != 2 || before == '~' {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

func (strikethrough) IsDelimiter(b byte) bool { return b == '~' }

func (strikethrough) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.Length == closer.Length
}

func (strikethrough) OnMatch(int) ast.Node { return &markdownNode{open: "<del>", close: "</del>"} }

// plainAddress reads an address in a text as it is, without markup inside.
type plainAddress struct{}

// Trigger returns the signs that may be before an address. The space stands for the
// beginning of a text, too.
func (plainAddress) Trigger() []byte { return []byte(" (\"':=,;>-./|{#+@") }

func (plainAddress) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before := 0
	if len(line) > 0 && !isLetter(line[0]) {
		before = 1
	}
	if schemeLength(string(line[before:min(len(line), before+maxScheme+len("://"))])) == 0 {
		return nil
	}
	if before == 0 && isWordCharacter(block.PrecendingCharacter()) {
		return nil
	}
	n := bareLength(string(line[before:min(len(line), maxAddress)]), emphasisSigns)
	if n == 0 {
		return nil
	}
	if before > 0 {
		ast.MergeOrAppendTextSegment(parent, segment.WithStop(segment.Start+before))
	}
	segment = segment.WithStart(segment.Start + before)
	block.Advance(before + n)
	node := ast.NewString([]byte(html.EscapeString(string(block.Value(segment.WithStop(segment.Start + n))))))
	node.SetCode(true) // it is written as it is
	return node
}

// maxAddress is the maximum length of an address in a text, in bytes.
const maxAddress = 8 << 10

// markdownNode is an element that the library's Markdown lacks.
type markdownNode struct {
	ast.BaseInline
	open, close string
}

var kindMarkdownNode = ast.NewNodeKind("markup")

func (*markdownNode) Kind() ast.NodeKind { return kindMarkdownNode }

func (n *markdownNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// markdownNodes renders markdownNode.
type markdownNodes struct{}

func (markdownNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindMarkdownNode, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		s := n.(*markdownNode).close
		if entering {
			s = n.(*markdownNode).open
		}
		_, err := w.WriteString(s)
		return ast.WalkContinue, err
	})
}

// referenceRenderers keep the references of chats, such as <!channel>, and links in the same
// notation.
var referenceRenderers = map[Dialect]goldmark.Markdown{
	// See https://docs.slack.dev/messaging/formatting-message-text.
	DialectSlack: newMarkdownRenderer(plainAddress{}, references{
		lazyregexp.New(`^<[ \t]*((?:https?://|mailto:|[@#!]\w)[^|<>\n]*)(?:\|([^<>\n]*))?>`),
	}),
	// See https://developers.google.com/workspace/chat/format-messages#messages-@mention.
	DialectGoogleChat: newMarkdownRenderer(plainAddress{}, references{lazyregexp.New(`^<(users/\w+|https?://[^|<>\n]*\|)([^<>\n]*)>`)}),
}

// references reads a chat's references between < and > in Markdown. The pattern matches the target
// and its label.
type references struct{ pattern *lazyregexp.Regexp }

func (references) Trigger() []byte { return []byte{'<'} }

func (r references) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	m := r.pattern.FindStringSubmatch(string(line[:min(len(line), maxAddress)]))
	if m == nil {
		return nil
	}
	block.Advance(len(m[0]))
	s := "<" + strings.TrimRight(strings.TrimSpace(m[1]), "|")
	if label := strings.TrimSpace(m[2]); label != "" {
		s += "|" + angleEscaper.Replace(label)
	}
	return &markdownNode{open: "<" + referenceElement + ">" + html.EscapeString(s+">") + "</" + referenceElement + ">"}
}
