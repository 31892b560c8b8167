package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// ConvertForeign is [Convert] for Markdown and HTML that a stranger may have
// written, to Markdown or HTML. A link is followed by its address, unless its text is
// the address. If keepStyle is false, or in Markdown, the result has only the
// elements of simple texts: no styles, no attributes, no pictures, and a link is just
// its text and its address.
func ConvertForeign(text string, from, to Format, keepStyle bool) string {
	source := Convert(text, from, HTML)
	if to == HTML {
		return showTargets(source, !keepStyle)
	}
	source = showTargets(source, true)
	if md, ok := htmlToMarkdown(source); ok {
		return unescapeAddresses(escapeBrackets(md))
	}
	return EscapeMarkdown(htmlToText(source))
}

// showTargets returns HTML in which the address of a link follows its text. If
// reduce is set, only the elements of simple texts are left, without attributes.
func showTargets(text string, reduce bool) string {
	z := html.NewTokenizer(strings.NewReader(text))
	w := targetWriter{reduce: reduce}
	for {
		kind := z.Next()
		if kind == html.ErrorToken { // end of text; reading a string does not fail
			w.endLink()
			return w.b.String()
		}
		raw := string(z.Raw()) // Token changes it
		w.write(z.Token(), raw)
	}
}

// targetWriter writes HTML for showTargets.
type targetWriter struct {
	b      strings.Builder
	reduce bool
	hidden atom.Atom // open element whose content is left out; 0 if none

	inLink bool
	href   string // of the open link
	text   strings.Builder
}

func (w *targetWriter) write(t html.Token, raw string) {
	if w.reduce && w.hidden != 0 {
		if t.Type == html.EndTagToken && t.DataAtom == w.hidden {
			w.hidden = 0
		}
		return
	}
	start := t.Type == html.StartTagToken || t.Type == html.SelfClosingTagToken
	switch {
	case t.Type == html.TextToken:
		if w.inLink {
			w.text.WriteString(t.Data)
		}
		if w.reduce {
			raw = html.EscapeString(t.Data)
		}
		w.b.WriteString(raw)
	case t.DataAtom == atom.A && start:
		w.endLink()
		w.inLink, w.href = true, attribute(t, "href")
		w.text.Reset()
		if !w.reduce {
			w.b.WriteString(raw)
		}
	case t.DataAtom == atom.A:
		w.endLink()
	case !w.reduce:
		w.b.WriteString(raw)
	case t.DataAtom == atom.Img && start:
		w.b.WriteString(html.EscapeString(attribute(t, "alt")))
	case start && hides(t.DataAtom):
		w.hidden = t.DataAtom
	case isPlainElement(t.DataAtom) && start:
		w.b.WriteString("<" + t.Data + ">")
	case isPlainElement(t.DataAtom) && t.Type == html.EndTagToken:
		w.b.WriteString("</" + t.Data + ">")
	}
}

// endLink ends the link that is open, if any, with its address.
func (w *targetWriter) endLink() {
	if !w.inLink {
		return
	}
	w.inLink = false
	if !w.reduce {
		w.b.WriteString("</a>")
	}
	text, target := strings.TrimSpace(w.text.String()), linkAddress(w.href)
	switch {
	case target == "" || w.reduce && !isWebAddress(target):
		return // it leads nowhere, or is not a link any more
	case showsAddress(text, target):
		return
	case w.reduce && text == "":
		w.b.WriteString(html.EscapeString(target))
		return
	}
	w.b.WriteString(" (" + html.EscapeString(target) + ")")
}

// isWebAddress reports whether address leads to a page, a mailbox or a telephone.
func isWebAddress(address string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(address), ":")
	return slices.Contains([]string{"http", "https", "mailto", "tel"}, scheme)
}

func attribute(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val // of several, browsers use the first, too
		}
	}
	return ""
}

// isPlainElement reports whether an element belongs to simple texts.
func isPlainElement(tag atom.Atom) bool {
	switch tag {
	case atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Ins, atom.S, atom.Strike,
		atom.Del, atom.Sub, atom.Sup, atom.Small, atom.Code, atom.Kbd, atom.Samp,
		atom.Br, atom.Hr, atom.P, atom.Div, atom.Pre, atom.Blockquote, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Table, atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	}
	return isBlock(tag)
}

// escapeBrackets escapes every opening bracket in Markdown without links, if one of
// them could begin a link.
func escapeBrackets(md string) string {
	if !strings.Contains(md, "](") && !strings.Contains(md, "][") && !strings.Contains(md, "]:") {
		return md
	}
	var b strings.Builder
	escaped := false
	for i := range len(md) {
		if md[i] == '[' && !escaped {
			b.WriteByte('\\')
		}
		escaped = md[i] == '\\' && !escaped
		b.WriteByte(md[i])
	}
	return b.String()
}

// unescapeAddresses removes the backslashes within addresses. Programs that make
// links of addresses take them for a part of the address.
func unescapeAddresses(md string) string {
	var b strings.Builder
	for {
		i := strings.Index(md, "http")
		if i < 0 {
			b.WriteString(md)
			return b.String()
		}
		b.WriteString(md[:i])
		md = md[i:]
		n := addressLength(md)
		if n == 0 {
			n = len("http")
		} else {
			for len(md) > n+1 && md[n] == '\\' && strings.IndexByte(addressCharacters, md[n+1]) >= 0 {
				b.WriteString(md[:n])
				md = md[n+1:]
				n = len(md) - len(strings.TrimLeft(md, addressCharacters))
			}
		}
		b.WriteString(md[:n])
		md = md[n:]
	}
}
