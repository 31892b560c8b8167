package services

import (
	"html"
	"regexp"
	"strings"

	nethtml "golang.org/x/net/html"
)

// telegramWriter writes Telegram's HTML, in which white space counts.
type telegramWriter struct {
	strings.Builder
	pre  int  // depth of preformatted text
	line bool // the line has more than tags in it
}

var telegramNewline = regexp.MustCompile(`[ \t]*[\r\n]\s*`)

// text writes a text. But where it is preformatted, a line break of the
// source is a mere space, and none where a line begins.
func (w *telegramWriter) text(s string) {
	if w.pre == 0 {
		if out := w.String(); out == "" || strings.HasSuffix(out, "\n") {
			if rest := strings.TrimLeft(s, " \t\r\n"); rest == "" || strings.ContainsAny(s[:len(s)-len(rest)], "\r\n") {
				s = rest
			}
		}
		s = telegramNewline.ReplaceAllString(s, " ")
	}
	w.line = w.line || s != ""
	w.WriteString(telegramCharacters.Replace(s))
}

var telegramCharacters = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\u00a0", " ", "\u2003", "   ")

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
