package services

import (
	"html"
	"strings"

	nethtml "golang.org/x/net/html"
)

// telegramWriter writes Telegram's HTML, in which white space counts.
type telegramWriter struct {
	strings.Builder
	pre  int  // depth of preformatted text
	line bool // the line has more than tags in it
}

// text writes a text; its white space counts only where it is preformatted.
func (w *telegramWriter) text(s string) {
	s = strings.NewReplacer("\u00a0", " ", "\u2003", "   ").Replace(s)
	if w.pre == 0 {
		lead, trail := strings.TrimLeft(s, " \t\r\n") != s, strings.TrimRight(s, " \t\r\n") != s
		words := strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), " ")
		if lead && !w.fresh() {
			words = " " + words
		}
		if trail && strings.TrimSpace(words) != "" {
			words += " "
		}
		s = words
	}
	w.line = w.line || s != ""
	w.WriteString(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s))
}

// fresh says whether a white space would be one too many.
func (w *telegramWriter) fresh() bool {
	s := w.String()
	return s == "" || strings.HasSuffix(s, "\n") || strings.HasSuffix(s, " ")
}

// newline ends a line; one that has tags only, where asked to.
func (w *telegramWriter) newline(tags bool) {
	if s := w.String(); w.line || tags && s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
		w.line = false
	}
}

func (w *telegramWriter) start(t nethtml.Token) {
	if telegramBreaks.MatchString(t.Data) {
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
	switch name := telegramTags[t.Data]; {
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

func (w *telegramWriter) end(element string) {
	if name := telegramTags[element]; name != "" {
		if name == "pre" && w.pre > 0 {
			w.pre--
		}
		w.WriteString("</" + name + ">")
	}
	if telegramBreaks.MatchString(element) {
		w.newline(false)
	}
}
