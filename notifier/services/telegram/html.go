package telegram

import (
	"html"
	"slices"
	"strconv"
	"strings"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// allowedTags maps HTML elements to the elements that Telegram supports.
var allowedTags = map[string]string{
	"b": "b", "strong": "b", "i": "i", "em": "i", "caption": "i", "u": "u", "ins": "u", "s": "s", "strike": "s", "del": "s",
	"a": "a", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-spoiler": "tg-spoiler",
	"h1": "b", "h2": "b", "h3": "b", "h4": "b", "h5": "b", "h6": "b", "title": "b",
}

// blockElements matches the elements that begin a new line.
var blockElements = lazyregexp.New(`^(br|hr|p|div|ul|ol|li|h[1-6]|title|pre|blockquote|table|tr|section|article|header|footer|dl|dt|dd|` +
	`figure|figcaption|main|nav|aside|address|center|details|summary|fieldset|legend|option)$`)

// reduceHTML reduces HTML to what Telegram supports. Elements that Telegram does
// not support are replaced by their content. Tags that are not HTML stay as they
// are.
func reduceHTML(text string) string {
	z := nethtml.NewTokenizer(strings.NewReader(text))
	var b htmlWriter
	skip := "" // the element whose content is left out
	for {
		kind := z.Next()
		raw := string(z.Raw())
		token := z.Token()
		switch {
		case kind == nethtml.ErrorToken:
			b.close(0)
			return strings.TrimSpace(b.String())
		case kind == nethtml.CommentToken, kind == nethtml.DoctypeToken:
		case skip != "":
			if kind == nethtml.EndTagToken && token.Data == skip {
				skip = ""
			}
		case kind == nethtml.TextToken:
			b.text(token.Data)
		case atom.Lookup([]byte(token.Data)) == 0 && allowedTags[token.Data] == "":
			b.WriteString(raw)
		case kind == nethtml.EndTagToken:
			b.end(token.Data)
		case token.Data == "script" || token.Data == "style":
			skip = token.Data
		default:
			b.start(token)
		}
	}
}

// htmlWriter writes Telegram's HTML, in which white space is significant.
type htmlWriter struct {
	strings.Builder
	pre   int      // depth of preformatted text
	line  bool     // the current line has text
	lists []int    // the next number of each open list, or 0 for one without numbers
	open  []string // elements of Telegram, the innermost last
}

// close ends the open elements except the first n. Telegram refuses a text in which elements are
// not closed, or in another order.
func (w *htmlWriter) close(n int) {
	for _, name := range slices.Backward(w.open[n:]) {
		if name == "pre" {
			w.pre--
		}
		w.WriteString("</" + name + ">")
	}
	w.open = w.open[:n]
}

var newlinePattern = lazyregexp.New(`[ \t]*[\r\n]\s*`)

// text writes text. Unless it is preformatted, line breaks become spaces, and
// are dropped at the beginning of a line.
func (w *htmlWriter) text(s string) {
	if w.pre == 0 {
		if out := w.String(); out == "" || strings.HasSuffix(out, "\n") {
			if rest := strings.TrimLeft(s, " \t\r\n"); rest == "" || strings.ContainsAny(s[:len(s)-len(rest)], "\r\n") {
				s = rest
			}
		}
		s = newlinePattern.ReplaceAllString(s, " ")
	}
	w.line = w.line || s != ""
	w.WriteString(htmlEscaper.Replace(s))
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\u00a0", " ", "\u2003", "   ")

// newline ends the line if it has text or, with tags, if it is not empty.
func (w *htmlWriter) newline(tags bool) {
	if s := w.String(); w.line || tags && s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
		w.line = false
	}
}

// start writes a start tag.
func (w *htmlWriter) start(t nethtml.Token) {
	if blockElements.MatchString(t.Data) {
		w.newline(t.Data == "br" || t.Data == "hr")
	}
	attribute := func(name string) string {
		for _, a := range t.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	switch name := allowedTags[t.Data]; {
	case t.Data == "ul":
		w.lists = append(w.lists, 0)
	case t.Data == "ol":
		first, err := strconv.Atoi(attribute("start"))
		if err != nil || first < 1 {
			first = 1
		}
		w.lists = append(w.lists, first)
	case t.Data == "li":
		w.line = true
		w.WriteString(w.itemMark(attribute("value")))
	case t.Data == "td" || t.Data == "th":
		w.text(" ")
	case t.Data == "img":
		w.text(attribute("alt"))
	case name == "" || name == "a" && attribute("href") == "":
		return
	case name == "a":
		w.WriteString(`<a href="` + html.EscapeString(attribute("href")) + `">`)
	case name == "code" && strings.HasPrefix(attribute("class"), "language-"):
		w.WriteString(`<code class="` + html.EscapeString(attribute("class")) + `">`)
	default:
		if name == "pre" {
			w.pre++
		}
		w.WriteString("<" + name + ">")
	}
	if name := allowedTags[t.Data]; name != "" {
		w.open = append(w.open, name)
	}
}

// itemMark returns what is before the text of a list item, whose number may be given.
func (w *htmlWriter) itemMark(value string) string {
	if len(w.lists) == 0 || w.lists[len(w.lists)-1] == 0 {
		return "-"
	}
	number := &w.lists[len(w.lists)-1]
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		*number = n
	}
	*number++
	return strconv.Itoa(*number-1) + ". "
}

// end writes an end tag.
func (w *htmlWriter) end(element string) {
	if n := len(w.lists); n > 0 && (element == "ul" || element == "ol") {
		w.lists = w.lists[:n-1]
	}
	for i, name := range slices.Backward(w.open) {
		if name == allowedTags[element] {
			w.close(i)
			break
		}
	}
	if blockElements.MatchString(element) {
		w.newline(false)
	}
}
