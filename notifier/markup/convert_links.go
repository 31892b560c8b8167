package markup

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// defuseLinks takes the address out of links and pictures that would run a
// script or bring content of their own, and leaves their text: programs that
// render Markdown are less on their guard than browsers.
func defuseLinks(doc *html.Node) {
	for n := range doc.Descendants() {
		key := ""
		switch n.DataAtom {
		case atom.A:
			key = "href"
		case atom.Img:
			key = "src"
		}
		i := attr(n, key)
		if key == "" || i < 0 || !scriptURL(n.Attr[i].Val) {
			continue
		}
		if n.DataAtom == atom.Img {
			for _, a := range n.Attr {
				if a.Key == "alt" && a.Val != "" {
					n.AppendChild(&html.Node{Type: html.TextNode, Data: a.Val})
				}
			}
		}
		n.Data, n.DataAtom, n.Attr = "span", atom.Span, nil
	}
}

// scriptURL reports whether an address has a scheme that carries content
// instead of saying where it is. Markdown decodes character references and
// backslashes once more, and browsers overlook control and format characters.
func scriptURL(address string) bool {
	scheme, _, ok := strings.Cut(html.UnescapeString(address), ":")
	if !ok {
		return false
	}
	scheme = strings.Map(func(r rune) rune {
		if r == '\\' || unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return unicode.ToLower(r)
	}, scheme)
	return slices.Contains([]string{"javascript", "vbscript", "data", "file", "blob"}, scheme)
}
