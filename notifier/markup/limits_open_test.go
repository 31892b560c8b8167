package markup

import (
	"fmt"
	"strings"
	"testing"
)

// TestCutsCloseMarkup checks that each part of a text has the markup of the whole: what is
// open at a cut is closed, and opened again, and all words and line breaks arrive.
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

// TestCutsLeaveText checks that what is no markup is not closed.
func TestCutsLeaveText(t *testing.T) {
	for _, text := range []string{
		"if a||b " + strings.Repeat("words ", 100) + "c||d", "2 * 3 **open " + strings.Repeat("words ", 100), strings.Repeat("a_b * c ", 60), "`open " + strings.Repeat("words ", 100), strings.Repeat("https://a.b/_c_*d ", 30),
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
