package markup

import (
	"strings"
	"testing"
	"time"
)

// reader is an input format. in converts a text to HTML, Markdown or plain text.
type reader struct {
	name string
	in   func(text string, to Format) string
}

func readers() []reader {
	all := []reader{
		{"text", func(s string, to Format) string { return Convert(s, Text, to) }},
		{"CommonMark", func(s string, to Format) string { return Convert(s, Markdown, to) }},
		{"HTML", func(s string, to Format) string { return Convert(s, HTML, to) }},
	}
	for d := range chats {
		all = append(all, reader{string(d), func(s string, to Format) string { return d.Convert(s, to, time.UTC) }})
	}
	return all
}

// FuzzPairs checks each way in with each way out: every letter of a text that the tree has
// arrives, and HTML has only elements that the tree may have, each closed.
func FuzzPairs(f *testing.F) {
	for _, s := range []string{
		"Failed ```Trace\n  a *b*``` *c* ~d~ _e_ `f` <https://g.h/i_j_?x=_y_|run [1]>",
		"**a** ~~b~~ ***c*** __d__ ||e|| `f``g` [h](https://i.j/k_(l)_)",
		"> a\n> > b\n\n1. c\n   - d\n3. e\n\n# f\n\n| g | h |\n|---|---|\n| i | j |",
		"k\n| g | h |\n|:--|--:|\n| i | `j|l` |", "AT&amp;T &lt;\n&copy; \\: \\|", "a~b ~c~ ~~~\nd\n~~~",
		"<p>*a* _b_ <b>c</b> <a href='https://e.com/(d_'>[e](f)</a></p><ol " +
			"start=3><li>g<ul><li>h</ul><li>i</ol><table><tr><td>j<td>k|l</table><pre>m " +
			"```</pre><code>n``o`p</code>",
		"<script>a</script> <!-- b --> <img src=x onerror=c> <svg onload=d> &lt;b&gt;",
		"2*3*4 a_b_c *d *e* f_ `g", "||a|b||\n|-|\n\\*\\_\\~\\`\\|",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) > 2000 || strings.ContainsAny(in, "\x00\r") {
			return
		}
		for _, r := range readers() {
			page := r.in(in, HTML)
			if r.name != "HTML" && r.name != "CommonMark" { // which may have any HTML
				if tag := unbalanced(page); tag != "" {
					t.Errorf("%s: the HTML of %q has %s: %q", r.name, in, tag, page)
				}
			}
			doc := documentOf(page)
			if doc == nil {
				continue
			}
			want := wordsOf(nodeText(doc))
			for d, s := range syntaxes {
				if got := s.write(doc); !hasWords(wordsOf(got), want) {
					t.Errorf("%s to %s: %q has %q, and loses some of it: %q", r.name, d, in, want, got)
				}
			}
			md := writeMarkdown(doc)
			if got := wordsOf(htmlWords(markdownToHTML(md))); !hasWords(got, want) {
				t.Errorf("%s to Markdown: %q has %q, and is shown as %q: %q", r.name, in, want, got, md)
			}
		}
	})
}

// hasWords reports whether got has the letters of want in their order. Addresses, languages
// of code and numbers of lists are between them.
func hasWords(got, want string) bool {
	for _, r := range want {
		i := strings.IndexRune(got, r)
		if i < 0 {
			return false
		}
		got = got[i+len(string(r)):]
	}
	return true
}
