package markup

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// linkAddress returns the address that a link leads to as one word, or "" if it is
// of no use outside of the document: it is relative or unsafe.
func linkAddress(href string) string {
	href = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, strings.TrimSpace(href))
	scheme, rest, ok := strings.Cut(href, ":")
	if !ok || rest == "" || strings.ContainsFunc(scheme, isNotInScheme) || isUnsafeURL(href) {
		return ""
	}
	return strings.ReplaceAll(href, " ", "%20")
}

// isNotInScheme reports whether r cannot be in the scheme of an address.
func isNotInScheme(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-.", r))
}

// showsAddress reports whether a reader of the text of a link knows its address.
func showsAddress(text, address string) bool {
	return strings.Contains(text, address) || strings.EqualFold(bareAddress(text), bareAddress(address))
}

// bareAddress returns an address as people write it, without the parts that programs add.
func bareAddress(address string) string {
	for _, prefix := range []string{"https://", "http://", "mailto:", "tel:"} {
		if len(address) >= len(prefix) && strings.EqualFold(address[:len(prefix)], prefix) {
			address = address[len(prefix):]
			break
		}
	}
	return strings.TrimSuffix(address, "/")
}

// removeUnsafeLinks replaces links and images whose address is a script or
// embedded data by their text. Programs that render Markdown check addresses
// less than browsers do.
func removeUnsafeLinks(doc *html.Node) {
	for n := range doc.Descendants() {
		key := ""
		switch n.DataAtom {
		case atom.A:
			key = "href"
		case atom.Img:
			key = "src"
		}
		i := attr(n, key)
		if key == "" || i < 0 || !isUnsafeURL(n.Attr[i].Val) {
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

// isUnsafeURL reports whether address has a scheme that runs a script, embeds
// content or reads local files. Character references and backslashes are
// decoded first, as Markdown does. Control and format characters are ignored,
// as browsers do.
func isUnsafeURL(address string) bool {
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
