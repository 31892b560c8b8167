package telegram

import (
	"html"
	"regexp"
	"strings"

	nethtml "golang.org/x/net/html"
)

// htmlWriter writes Telegram's HTML, in which white space counts.
type htmlWriter struct {
	strings.Builder
	pre  int  // depth of preformatted text
	line bool // the line has more than tags in it
}

var newlinePattern = regexp.MustCompile(`[ \t]*[\r\n]\s*`)

// text writes a text. But where it is preformatted, a line break of the
// source is a mere space, and none where a line begins.
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

// newline ends a line; one that has tags only, where asked to.
func (w *htmlWriter) newline(tags bool) {
	if s := w.String(); w.line || tags && s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
		w.line = false
	}
}

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
	case t.Data == "li":
		w.line = true
		w.WriteString("-")
	case t.Data == "td" || t.Data == "th":
		w.text(" ")
	case t.Data == "img":
		w.text(attribute("alt"))
	case name == "" || name == "a" && attribute("href") == "":
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
}

func (w *htmlWriter) end(element string) {
	if name := allowedTags[element]; name != "" {
		if name == "pre" && w.pre > 0 {
			w.pre--
		}
		w.WriteString("</" + name + ">")
	}
	if blockElements.MatchString(element) {
		w.newline(false)
	}
}
