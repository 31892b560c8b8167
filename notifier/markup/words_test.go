package markup

import (
	"html"
	"strings"
	"testing"
	"time"
	"unicode"

	nethtml "golang.org/x/net/html"
)

// wordsOf returns the letters and digits of a text.
func wordsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// FuzzChats checks that no text of a chat makes a reader fail, or loses a letter on its way
// to another format or chat, and that its HTML has only elements of the tree, each closed.
func FuzzChats(f *testing.F) {
	for _, s := range []string{
		"*a* _b_ ~c~ `d` ```e\nf``` <https://g.h|i [1]> &lt;j&gt;",
		"**a *b*** ||c|| __d__ [e](https://f.g/h_i_) \\*j\\*", "> a\n>> b\n>>> c\n\nd",
		"- a\n  - b\n1. c\n\n# d\n|e|f|\n|-|-|\n|g|h|", "<script>a</script> <!-- b --> <@U1> :smile: <t:1:R>",
		"2*3*4 a_b_c https://e.com/a_b_c?x=_y_*z*[1]", "```\na", "* * * ***a** b*",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 2000 || strings.ContainsAny(in, "<>&:!\x00\r") && strings.Contains(in, "<") && strings.Contains(in, "|") {
			return // a reference shows its label only
		}
		for d := range chats {
			page := d.Convert(in, HTML, time.UTC)
			if tag := unbalanced(page); tag != "" {
				t.Errorf("%s: the HTML of %q has %s: %q", d, in, tag, page)
			}
			words := wordsOf(htmlWords(page))
			if got := wordsOf(htmlWords(markdownToHTML(d.Convert(in, Markdown, time.UTC)))); got != words {
				t.Errorf("%s: %q has %q, and in Markdown %q: %q", d, in, words, got, d.Convert(in, Markdown, time.UTC))
			}
			_ = d.Convert(d.Contain(in), Text, time.UTC)
		}
		for d := range syntaxes {
			_, _ = d.Write(in, true), d.Escape(in)
		}
	})
}

// htmlWords returns the text of HTML.
func htmlWords(page string) string {
	z := nethtml.NewTokenizer(strings.NewReader(page))
	var b strings.Builder
	for {
		switch z.Next() {
		case nethtml.ErrorToken:
			return b.String()
		case nethtml.TextToken:
			b.WriteString(html.UnescapeString(string(z.Raw())))
		}
	}
}

// unbalanced returns a tag that has no other, or that no chat has.
func unbalanced(page string) string {
	z := nethtml.NewTokenizer(strings.NewReader(page))
	var open []string
	for {
		kind := z.Next()
		tag := z.Token()
		switch {
		case kind == nethtml.ErrorToken:
			return strings.Join(open, " ")
		case kind == nethtml.StartTagToken && tag.Data == "br":
		case kind == nethtml.StartTagToken:
			if tag.Data != "span" && !isPlainElement(tag.DataAtom) && tag.Data != "a" {
				return "<" + tag.Data + ">"
			}
			open = append(open, tag.Data)
		case kind == nethtml.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tag.Data {
				return "</" + tag.Data + ">"
			}
			open = open[:len(open)-1]
		}
	}
}
