package markup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCutsCloseMarkup checks that each part of a text has the markup of the whole: open markup is
// closed at a cut and opened again, and all words and line breaks arrive.
func TestCutsCloseMarkup(t *testing.T) {
	var lines, items strings.Builder
	for i := range 100 {
		fmt.Fprintf(&lines, "line %d a_b\n", i)
		fmt.Fprintf(&items, "<li>item %d</li>", i)
	}
	words := strings.Repeat("some words ", 100)
	for _, tt := range []struct {
		name                string
		format              Format
		reads               Format
		body, before, after string
	}{
		{"code in HTML", HTML, "", "<pre><code>" + lines.String() + "</code></pre>", "<pre><code>", "</code></pre>"},
		{"bold in HTML", HTML, "", "<p><b>" + words + "</b></p>", "<p><b>", "</b></p>"},
		{"a link in HTML", HTML, "", `<a href="https://a.b/">` + words + "</a>", `<a href="https://a.b/">`, "</a>"},
		{"code in Markdown", Markdown, "", "```go\n" + lines.String() + "```", "```go\n", "\n```"},
		{"code that is read as Markdown", Text, Markdown, "```\n" + lines.String() + "```", "```\n", "\n```"},
		{"code between tildes", Markdown, "", "~~~go\n" + lines.String() + "~~~", "~~~go\n", "\n~~~"},
		{"code of one line", Markdown, "", "```go\n" + words + "\n```", "```go\n", "\n```"},
		{"code of one line in HTML", HTML, "", "<pre><code>" + strings.TrimSpace(words) + "</code></pre>", "<pre><code>", "</code></pre>"},
		{"a spoiler", Text, Markdown, "||" + words + "end||", "||", "||"},
		{"bold in Markdown", Markdown, "", "**" + words + "end**", "**", "**"},
		{"bold and struck out", Markdown, "", "**~~" + words + "end~~**", "**~~", "~~**"},
		{"code in a line", Markdown, "", "`" + words + "end`", "`", "`"},
		{"a quotation", Markdown, "", "> " + words, "> ", ""},
		{"a table", Markdown, "", "| a | b |\n|---|---|\n" + strings.Repeat("| some | words |\n", 40), "| a | b |\n|---|---|\n", ""},
		{"the rest", Text, Markdown, ">>> " + lines.String(), ">>> ", ""},
	} {
		l := Limits{Body: 200, Reads: tt.reads}
		parts := l.Fit("", tt.body, tt.format, tt.format, OverflowSplit)
		if len(parts) < 4 {
			t.Fatalf("%s: %d parts", tt.name, len(parts))
		}
		var all []string
		for i, p := range parts {
			if !strings.HasPrefix(p.Body, tt.before) || !strings.HasSuffix(p.Body, tt.after) || Characters.Length(p.Body) > l.Body {
				t.Errorf("%s: part %d is %q", tt.name, i, p.Body)
			}
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(p.Body, tt.before), tt.after))
		}
		want := strings.TrimSuffix(strings.TrimPrefix(tt.body, tt.before), tt.after)
		if got := strings.Join(all, " "); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: %q arrives as %q", tt.name, want, got)
		}
		short := l.Fit("", tt.body, tt.format, tt.format, OverflowTruncate)[0].Body
		if !strings.HasSuffix(short, tt.after) || Characters.Length(short) > l.Body {
			t.Errorf("%s: cut to %q", tt.name, short)
		}
	}
	for _, long := range []string{"<pre>" + strings.Repeat("x", 1000) + "</pre>", "```\n" + strings.Repeat("x", 1000) + "\n```"} {
		format := HTML
		if long[0] == '`' {
			format = Markdown
		}
		for i, p := range (Limits{Body: 200}).Fit("", long, format, format, OverflowSplit) {
			if !strings.Contains(p.Body, "x") {
				t.Errorf("part %d of %.10q is %q", i, long, p.Body)
			}
		}
	}
	parts := Limits{Body: 200}.Fit("", "<ol>"+items.String()+"</ol>", HTML, HTML, OverflowSplit)
	for i, p := range parts {
		if i > 0 && !strings.HasPrefix(p.Body, `<ol start="`) || !strings.HasSuffix(p.Body, "</ol>") {
			t.Errorf("list, part %d: %q", i, p.Body)
		}
	}
}

// TestCutsLeaveEscapes checks that no cut is between a backslash and the sign that it
// makes text.
func TestCutsLeaveEscapes(t *testing.T) {
	for _, text := range []string{strings.Repeat(`\<`, 100), strings.Repeat(`\\`, 100), strings.Repeat("> line \\<a_b\n", 30)} {
		for room := 30; room < 60; room++ {
			for i, p := range (Limits{Body: room}).Fit("", text, Markdown, Markdown, OverflowSplit) {
				if n := len(p.Body) - len(strings.TrimRight(p.Body, `\`)); n%2 == 1 {
					t.Errorf("part %d of %d characters ends with %q", i, room, p.Body)
				}
			}
		}
	}
}

// TestCutsLeaveCharacters checks that no cut is within an emoji or between a letter and its
// accent.
func TestCutsLeaveCharacters(t *testing.T) {
	for _, c := range []string{"e\u0301", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "👍🏽", "❤\ufe0f"} {
		for room := 30; room < 60; room++ {
			for i, p := range (Limits{Body: room}).Fit("", strings.Repeat(c, 100), Text, Text, OverflowSplit) {
				if strings.ReplaceAll(p.Body, c, "") != "" {
					t.Errorf("part %d of %d characters of %q is %q", i, room, c, p.Body)
				}
			}
		}
	}
}

// TestCutsLeaveText checks that a cut does not close text that only looks like markup.
func TestCutsLeaveText(t *testing.T) {
	for _, text := range []string{
		"if a||b " + strings.Repeat("words ", 100) + "c||d", "2 * 3 **open " + strings.Repeat("words ", 100),
		strings.Repeat("a_b * c ", 60), "`open " + strings.Repeat("words ", 100),
		strings.Repeat("https://a.b/_c_*d ", 30),
	} {
		parts := Limits{Body: 100}.Fit("", text, Markdown, Markdown, OverflowSplit)
		var all []string
		for _, p := range parts {
			all = append(all, p.Body)
		}
		if got := strings.Join(all, " "); got != strings.TrimSpace(text) {
			t.Errorf("%q arrives as %q", text, got)
		}
	}
}

// TestCutsAtBlocks checks where a text is cut, and how a part begins and ends.
func TestCutsAtBlocks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		format Format
		room   int
		body   string
		want   []string
	}{
		{"after a break", HTML, 30, "one two three<br/>four five six seven eight", []string{"one two three<br/>", "four five six seven eight"}},
		{
			"after an item", HTML, 48, "<ul><li>one two</li>\n<li>three four five six seven</li></ul>",
			[]string{"<ul><li>one two</li></ul>", "<ul><li>three four five six seven</li></ul>"},
		},
		{
			"before an item without end tags", HTML, 44, "<ul><li>one two\n<li>three four five six seven</ul>",
			[]string{"<ul><li>one two</li></ul>", "<ul><li>three four five six seven</ul>"},
		},
		{
			"after a paragraph", HTML, 40, "<p>one<br>two</p><p>three<br>four five six</p>",
			[]string{"<p>one<br>two</p>", "<p>three<br>four five six</p>"},
		},
		{
			"before a paragraph", HTML, 40, "one two three<p>four five six seven eight</p>",
			[]string{"one two three", "<p>four five six seven eight</p>"},
		},
		{
			"after a row", HTML, 50, "<table><tr><td>one</td></tr>\n<tr><td>two three four</td></tr></table>",
			[]string{"<table><tr><td>one</td></tr></table>", "<table><tr><td>two three four</td></tr></table>"},
		},
		{"after a division", HTML, 30, "<div>one two</div>three four five six", []string{"<div>one two</div>", "three four five six"}},
		{
			"not after a heading", HTML, 40, "<p>one two</p><h2>three</h2><p>four five six</p>",
			[]string{"<p>one two</p>", "<h2>three</h2><p>four five six</p>"},
		},
		{"not at a line break of the source", HTML, 20, "one two\nthree four five", []string{"one two\nthree four", "five"}},
		{
			"at a line break of code", HTML, 30, "<pre>one two\nthree four five six</pre>",
			[]string{"<pre>one two</pre>", "<pre>three four five six</pre>"},
		},
		{
			"an item that is too long", HTML, 90,
			"<ul><li>one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen</li></ul>",
			[]string{
				"<ul><li>one two three four five six seven eight nine ten eleven twelve thirteen</li></ul>",
				`<ul><li style="list-style:none">fourteen fifteen</li></ul>`,
			},
		},
		{
			"little room", HTML, 60, "<ul><li>one two three four five six seven eight nine ten eleven</li></ul>",
			[]string{"<ul><li>one two three four five six seven eight</li></ul>", "<ul><li>nine ten eleven</li></ul>"},
		},
		{"a numbered item that is too long", HTML, 140, `<ol class="c" start="4"><li>a</li><li>` +
			strings.Repeat("one two ", 22) + `</li><li>b</li></ol>`, []string{
			`<ol class="c" start="4"><li>a</li></ol>`, `<ol start="5" class="c"><li>` + strings.Repeat("one two ", 12) + "one</li></ol>",
			`<ol start="5" class="c"><li style="list-style:none">two ` + strings.Repeat("one two ", 9) + "</li></ol>",
			`<ol start="6" class="c"><li>b</li></ol>`,
		}},
		{
			"an item with a value", HTML, 60,
			"<ol><li value=7>one two three four five six seven eight nine ten<li>b</ol>",
			[]string{"<ol><li value=7>one two three four five six seven</li></ol>", `<ol start="7"><li>eight nine ten<li>b</ol>`},
		},
		{
			"a picture that is too long", HTML, 30,
			`one <img src="` + strings.Repeat("x", 50) + `"> two <b>three</b> four five six`,
			[]string{"one  two <b>three</b> four", "five six"},
		},
		{"a comment that is too long", HTML, 20, "one <!-- " + strings.Repeat("x > ", 50) + "--> two", []string{"one  two"}},

		{
			"after a paragraph of Markdown", Markdown, 30, "one two\nthree\n\nfour five\nsix seven eight nine",
			[]string{"one two\nthree", "four five\nsix seven eight nine"},
		},
		{"after a line of Markdown", Markdown, 20, "one two\nthree four five", []string{"one two", "three four five"}},
		{
			"not after a heading of Markdown", Markdown, 32, "one two three\n\n# four\n\nfive six seven eight",
			[]string{"one two three", "# four\n\nfive six seven eight"},
		},
		{"not before a sign", Markdown, 19, "one two three four - five", []string{"one two three", "four - five"}},
		{
			"a link", Markdown, 40, "see [the log file](https://a.b/c) for what it is",
			[]string{"see [the log file](https://a.b/c) for", "what it is"},
		},
		{
			"a link that is too long", Markdown, 40,
			"[one two three four *five six* seven eight nine](https://a.b)",
			[]string{"[one two three four](https://a.b)", "[*five six* seven eight](https://a.b)", "[nine](https://a.b)"},
		},
		{
			"a picture's text that is too long", Markdown, 40,
			"![one two three four five six seven eight nine](https://a.b)",
			[]string{"![one two three four five](https://a.b)", "![six seven eight nine](https://a.b)"},
		},
		{"code", Markdown, 30, "one two three four `five six seven`", []string{"one two three four", "`five six seven`"}},
		{"code with backticks", Markdown, 30, "``one two ` three four five six``", []string{"``one two ` three four five``", "``six``"}},
		{"emphasis in a quotation", Markdown, 22, "> **one two three\n> four five six**", []string{"> **one two three**", "> **four five six**"}},
		{"a heading that is too long", Markdown, 22, "# one two three four five six", []string{"# one two three four", "# five six"}},
		{
			"a list within a list", Markdown, 40,
			"- one two three four five six\n    - seven eight\n        - nine\n- ten",
			[]string{"- one two three four five six", "- seven eight\n    - nine\n- ten"},
		},
		{
			"code by indentation", Markdown, 30, "one two three four\n\n    five six\n    seven",
			[]string{"one two three four", "    five six\n    seven"},
		},
		{"a hard line break", Markdown, 20, "**one two three\\\nfour five**", []string{"**one two three**", "**four five**"}},
		{
			"after code between fences", Markdown, 36, "```go\none\n```\ntwo three four\nfive six seven",
			[]string{"```go\none\n```", "two three four\nfive six seven"},
		},
		{
			"code that begins within a line", Markdown, 40, "one ```two three\n\nfour five six seven eight``` nine",
			[]string{"one ```two three\n```", "```\nfour five six seven eight``` nine"},
		},
	} {
		var got []string
		for _, p := range (Limits{Body: tt.room}).Fit("", tt.body, tt.format, tt.format, OverflowSplit) {
			got = append(got, p.Body)
			if n := Characters.Length(p.Body); n > tt.room {
				t.Errorf("%s: the length of %q is %d", tt.name, p.Body, n)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
