package markup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// textMaker makes texts whose words are all different.
type textMaker struct {
	*rand.Rand
	words int
	open  string // signs of emphasis
}

func (m *textMaker) word() string {
	m.words++
	return fmt.Sprintf("w%dx", m.words)
}

func (m *textMaker) pick(of ...string) string { return of[m.IntN(len(of))] }

// inlineHTML returns words within elements of a line.
func (m *textMaker) inlineHTML(depth int) string {
	var b strings.Builder
	for range 1 + m.IntN(6) {
		switch n := m.IntN(12); {
		case n < 7 || depth == 0:
			b.WriteString(m.word() + m.pick(" ", " ", " ", "\n", ". ", ", ", "&nbsp;", "&amp;"))
		case n == 7:
			b.WriteString(m.pick("<br>", "<br/>", "<!-- a > b --> ", "<img src='a>b'> "))
		default:
			name := m.pick("b", "i", "code", "u", "span", "a")
			attributes := ""
			if name == "a" || name == "span" {
				attributes = m.pick(` href="https://a.b/c?d>e"`, ` style='color:red'`)
			}
			b.WriteString("<" + name + attributes + ">" + m.inlineHTML(depth-1) + "</" + name + "> ")
		}
	}
	return b.String()
}

// blocksHTML returns blocks within blocks. Some leave out the end tags that are optional.
func (m *textMaker) blocksHTML(depth int) string {
	var b strings.Builder
	for range 1 + m.IntN(5) {
		switch n := m.IntN(9); {
		case n < 3 || depth == 0:
			b.WriteString("<p>" + m.inlineHTML(2) + m.pick("</p>", "</p>\n", ""))
		case n == 3:
			b.WriteString("<pre>" + strings.ReplaceAll(m.inlineHTML(1), " ", "\n") + "</pre>")
		case n == 4:
			b.WriteString(m.pick("<blockquote>", "<blockquote class=a>") + m.blocksHTML(depth-1) + "</blockquote>\n")
		case n == 5:
			b.WriteString("<h2>" + m.inlineHTML(1) + "</h2>\n")
		case n == 6:
			b.WriteString("<table>\n")
			for range 1 + m.IntN(3) {
				b.WriteString("<tr><td>" + m.inlineHTML(1) + m.pick("</td>", "") + "<td>" + m.inlineHTML(1) + "</td></tr>")
			}
			b.WriteString("</table>\n")
		default:
			name := m.pick("ol", "ul", "ol")
			b.WriteString("<" + name + m.pick("", ` class="c"`, " start=7", ` START='3' class=d`) + ">")
			for range 1 + m.IntN(6) {
				b.WriteString("<li" + m.pick("", "", "", ` value="9"`, ` style="color:red"`) + ">" + m.inlineHTML(1))
				if m.IntN(3) == 0 {
					b.WriteString(m.blocksHTML(depth - 1))
				}
				b.WriteString(m.pick("</li>", "</li>\n", ""))
			}
			b.WriteString("</" + name + ">")
		}
	}
	return b.String()
}

// inlineMarkdown returns words within emphasis, code and links.
func (m *textMaker) inlineMarkdown(depth int, chat bool) string {
	var b strings.Builder
	for i := range 1 + m.IntN(6) {
		if i > 0 {
			b.WriteString(m.pick(" ", " ", " ", ". ", " - ", " 2 * 3 ", ", "))
		}
		switch n := m.IntN(12); {
		case n < 7 || depth == 0:
			b.WriteString(m.word() + m.pick("", "", "", "!", "_a", `\*`, `\_`))
		case n == 7:
			b.WriteString("`" + m.word() + " * " + m.word() + "`")
		case n == 8:
			b.WriteString("[" + m.word() + " " + m.inlineMarkdown(0, chat) + "](https://a.b/c_d_(e)?f=*g*)")
		case n == 9:
			b.WriteString("https://a.b/_c_" + m.word())
		default:
			sign := m.pick("**", "*", "~~", "_", "***")
			if chat {
				sign = m.pick("**", "*", "~~", "||")
			}
			if strings.Contains(m.open, sign[:1]) {
				continue // emphasis within the same is the same
			}
			defer func(open string) { m.open = open }(m.open)
			m.open += sign[:1]
			b.WriteString(sign + m.word() + " " + m.inlineMarkdown(depth-1, chat) + " " + m.word() + sign)
		}
	}
	return b.String()
}

func (m *textMaker) blocksMarkdown(chat bool) string {
	var b strings.Builder
	for range 1 + m.IntN(8) {
		switch n := m.IntN(10); n {
		case 0:
			b.WriteString(m.pick("# ", "## ") + m.inlineMarkdown(1, chat) + "\n" + m.pick("", "\n"))
		case 1, 2:
			for i := range 1 + m.IntN(5) {
				b.WriteString(m.pick("- ", fmt.Sprint(i+1, ". ")) + m.inlineMarkdown(2, chat) + "\n")
			}
			b.WriteString("\n")
		case 3:
			for range 1 + m.IntN(4) {
				b.WriteString("> " + m.inlineMarkdown(2, chat) + "\n")
			}
			b.WriteString("\n")
		case 4, 5:
			b.WriteString(m.pick("```go\n", "```\n"))
			for range 1 + m.IntN(8) {
				b.WriteString(strings.Repeat(" ", m.IntN(3)) + m.word() + " * " + m.word() + "_\n" + m.pick("", "\n"))
			}
			b.WriteString("```\n" + m.pick("", "\n"))
		case 6:
			if chat {
				continue
			}
			b.WriteString("| " + m.word() + " | " + m.word() + " |\n|---|---|\n")
			for range 1 + m.IntN(5) {
				b.WriteString("| " + m.word() + " | **" + m.word() + "** |\n")
			}
			b.WriteString("\n")
		default:
			for range 1 + m.IntN(3) {
				b.WriteString(m.inlineMarkdown(3, chat) + "\n")
			}
			b.WriteString("\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// pathsOf returns where each word of HTML is, in their order. Tags and code are counted for
// equal.
func pathsOf(t *testing.T, page string, strict bool) (words []string, paths map[string]string) {
	paths = map[string]string{}
	var open []*html.Token
	numbers := []int{}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			for _, e := range open {
				if strict && e.Data != "p" {
					t.Errorf("%s is open at the end of %q", e.Data, page)
				}
			}
			return words, paths
		case html.TextToken:
			raw := string(z.Raw())
			for _, w := range strings.FieldsFunc(html.UnescapeString(raw), func(r rune) bool {
				return !isWordCharacter(r) || string(r) == noBreakSpace
			}) {
				if len(w) < 3 || w[0] != 'w' {
					continue
				}
				var b strings.Builder
				lists := 0
				for _, e := range open {
					b.WriteString("/" + e.Data)
					if e.Data == "ol" {
						fmt.Fprint(&b, numbers[lists])
					}
					if e.Data == "ol" || e.Data == "ul" {
						lists++
					}
					for _, a := range e.Attr {
						if a.Key != "start" && a.Key != "value" && a.Val != "list-style:none" {
							b.WriteString(" " + a.Key + "=" + a.Val)
						}
					}
				}
				words = append(words, w)
				paths[w] = b.String()
			}
		case html.StartTagToken:
			e := z.Token()
			if e.Data == "br" || e.Data == "img" || e.Data == "hr" {
				continue
			}
			last := func() string {
				if len(open) == 0 {
					return ""
				}
				return open[len(open)-1].Data
			}
			if strings.Contains(" p pre blockquote h2 table ol ul ", " "+e.Data+" ") && last() == "p" {
				open = open[:len(open)-1]
			}
			if e.Data == "li" {
				for last() == "p" || last() == "li" {
					open = open[:len(open)-1]
				}
				if last() != "ol" && last() != "ul" {
					t.Errorf("<li> is in %q: %q", last(), page)
					return words, paths
				}
				numbers[len(numbers)-1]++
				for _, a := range e.Attr {
					if a.Key == "value" {
						_, _ = fmt.Sscan(a.Val, &numbers[len(numbers)-1])
					}
				}
			}
			if e.Data == "td" && last() == "td" {
				open = open[:len(open)-1]
			}
			if e.Data == "ol" || e.Data == "ul" {
				first := 1
				for _, a := range e.Attr {
					if a.Key == "start" {
						_, _ = fmt.Sscan(a.Val, &first)
					}
				}
				numbers = append(numbers, first-1)
			}
			open = append(open, &e)
		case html.EndTagToken:
			e := z.Token()
			k := len(open) - 1
			for k >= 0 && open[k].Data != e.Data && (open[k].Data == "p" || open[k].Data == "li" || open[k].Data == "td") {
				k--
			}
			if k < 0 || open[k].Data != e.Data {
				t.Errorf("</%s> closes nothing in %q", e.Data, page)
				return words, paths
			}
			open = open[:k]
			if e.Data == "ol" || e.Data == "ul" {
				numbers = numbers[:len(numbers)-1]
			}
		}
	}
}

// TestCutsKeepMarkup checks for many texts that each part is well-formed, that the parts
// have each word once, in its order, and that each word has the markup around it that it has
// in the whole text.
func TestCutsKeepMarkup(t *testing.T) {
	for _, kind := range []struct {
		name   string
		format Format
		chat   bool
		make   func(m *textMaker) string
		page   func(text string) string
	}{
		{"HTML", HTML, false, func(m *textMaker) string { return m.blocksHTML(2) }, func(s string) string { return s }},
		{"Markdown", Markdown, false, func(m *textMaker) string { return m.blocksMarkdown(false) }, markdownToHTML},
		{"Discord", Markdown, true, func(m *textMaker) string { return m.blocksMarkdown(true) }, func(s string) string {
			return DialectDiscord.Convert(s, HTML, time.UTC)
		}},
		{
			"Mattermost", Markdown, true,
			func(m *textMaker) string { return strings.ReplaceAll(m.blocksMarkdown(true), "||", "**") },
			func(s string) string {
				return DialectMattermost.Convert(s, HTML, time.UTC)
			},
		},
	} {
		for seed := range uint64(80) {
			m := &textMaker{Rand: rand.New(rand.NewPCG(seed, 1))}
			text := strings.TrimSpace(kind.make(m))
			for _, room := range []int{500, 700, 999} {
				words, paths := pathsOf(t, kind.page(text), kind.format == HTML)
				var got []string
				for i, p := range (Limits{Body: room}).Fit("", text, kind.format, kind.format, OverflowSplit) {
					if n := Characters.Length(p.Body); n > room {
						t.Errorf("%s %d: part %d has %d characters of %d: %q", kind.name, seed, i, n, room, p.Body)
					}
					part, in := pathsOf(t, kind.page(p.Body), true)
					for _, w := range part {
						if len(got) > 0 && len(words) > len(got) && w != words[len(got)] && strings.Contains(p.Body, "---") {
							continue // the head of a table
						}
						got = append(got, w)
						if want := blockless(paths[w], kind.format); blockless(in[w], kind.format) != want {
							t.Fatalf("%s %d, room %d: in part %d, %s is in %q, and in the whole text in %q: %q",
								kind.name, seed, room, i, w, in[w], paths[w], p.Body)
						}
					}
				}
				if strings.Join(got, " ") != strings.Join(words, " ") {
					t.Errorf("%s %d, room %d: the words are\n%q, want\n%q", kind.name, seed, room, got, words)
				}
				if t.Failed() {
					return
				}
			}
		}
	}
}

// blockless returns a path in a text that was Markdown without paragraphs and lists: the rest
// of an item is a paragraph.
func blockless(path string, format Format) string {
	if format == HTML {
		return path
	}
	var kept []string
	for e := range strings.SplitSeq(path, "/") {
		name := strings.TrimRight(e, "0123456789")
		if name != "p" && name != "ol" && name != "ul" && name != "li" && !strings.HasPrefix(name, "h") && !slices.Contains(kept, e) {
			kept = append(kept, e)
		}
	}
	slices.Sort(kept)
	return strings.Join(kept, "/")
}

// FuzzCuts checks for any text that each part is within the limit, and that no letter is
// lost.
func FuzzCuts(f *testing.F) {
	for seed := range uint64(10) {
		m := &textMaker{Rand: rand.New(rand.NewPCG(seed, 2))}
		f.Add(m.blocksHTML(2), 90)
		f.Add(m.blocksMarkdown(true), 60)
	}
	for _, s := range []string{
		"<a <b>c</d></b> &amp; <!-- e", "**a *b `c ``d [e](f [g](<h>) ~~~\ni\n```j",
		"> > - a\n>>> b\n\\\n\\* <@1> || | |", "a\r\n\r\n\u0301\u200d🇩🇪🇩",
	} {
		f.Add(s, 30)
	}
	f.Fuzz(func(t *testing.T, text string, room int) {
		if room < 20 || room > 200 || len(text) > 5000 || !utf8.ValidString(text) || strings.Contains(strings.ToLower(text), "<style") {
			return
		}
		for _, format := range []Format{Text, Markdown, HTML} {
			all := ""
			for _, p := range (Limits{Body: room}).Fit("", text, format, format, OverflowSplit) {
				if n := Characters.Length(p.Body); n > room {
					t.Errorf("%s: the length of %q is %d, more than %d", format, p.Body, n, room)
				}
				all += p.Body
			}
			want := strings.Join(strings.Fields(strings.TrimSpace(text)), "")
			if format == HTML {
				want, all = shownLetters(text), shownLetters(all)
			}
			want = strings.ReplaceAll(strings.ReplaceAll(want, `\`, ""), ">", "") // before a line break, and in a quotation
			if strings.ContainsFunc(want, func(r rune) bool { return r == utf8.RuneError }) || len(all) > 4*len(text)+20*MaxParts {
				return
			}
			if !hasWords(all, want) {
				t.Errorf("%s, room %d: %q becomes %q", format, room, text, all)
			}
		}
	})
}

// shownLetters returns HTML without tags and white space.
func shownLetters(text string) string {
	o := outline{format: HTML, text: text, room: len(text)}
	var b strings.Builder
	for o.pos < len(text) {
		p := o.next()
		if p.kind == letter && text[o.pos] != '<' {
			b.WriteString(text[o.pos:p.end])
		}
		o.advance(p)
	}
	return b.String()
}
