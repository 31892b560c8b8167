package markup

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// What a conversion allocates and returns is in proportion to the text, and
// so is the time that it takes to write all that.
func TestConvertCost(t *testing.T) {
	const size = 64 << 10
	// behind is start and as many of unit as there is room for.
	behind := func(start, unit string) string { return start + strings.Repeat(unit, (size-len(start))/len(unit)) }
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	fences := ""
	for n := range 100 {
		fences += strings.Repeat("`", n) + " "
	}
	address := "[a]: http://" + strings.Repeat("x", size/2) + "\n\n"
	for _, test := range []struct {
		from, to Format
		texts    map[string]string
	}{
		{Text, HTML, map[string]string{
			"quotes": behind("", `"`), "lines": behind("", "\n"), "tabs": behind("", "\t"), "spaces": behind("", " "), "references": behind("", "&"),
		}},
		{HTML, Text, map[string]string{
			"quoted lines": behind(strings.Repeat("<blockquote>", 100)+"<pre>", "a\n"), "rules": behind("", "<hr>"), "items": behind("", "<li>"),
			"attributes": behind("<a", " a"), "tags": behind("", "<a>"), "half tags": behind("", "<a "), "references": behind("", "&a;"), "comments": behind("", "<!-->"),
		}},
		{Markdown, HTML, map[string]string{
			"references":        behind(address, "[a]\n\n"),
			"references in one": behind(address, "[a]"),
			"pictures":          behind(address, "![][a] "),
			"short references":  behind("[a]: http://"+strings.Repeat("x", 500)+" '"+strings.Repeat("''", 250)+"'\n\n", "[a]\n\n"),
			"titles":            behind("[a]: b '"+strings.Repeat(`"`, 1000)+"'\n\n", "[a]\n\n"),
			"definitions":       behind("", "[a]: b\n"),
			"half links":        behind("", "[a]("),
			"brackets":          behind("", "["),
			"emphasis":          behind("", "*a_b"),
			"instructions":      behind("", "*a <?\n"),
			"declarations":      behind("", "a <!A\n"),
			"half comments":     behind("", "a <!--\n"),
			"code":              behind(fences, "a\n"),
			"quotations":        behind("", strings.Repeat(">", maxNesting)+"a\n\n"),
			"lists":             behind("", strings.Repeat("- ", maxNesting/2)+"a\n\n"),
			"ragged table":      behind(strings.Repeat("|a", 200)+"\n"+strings.Repeat("|-", 200)+"\n", "|\n"),
			"tables":            behind("", "a|b\n-|-\n|\n\n"),
			"headings":          behind("", "#\n"),
			"marks":             behind("", `"`),
		}},
		{HTML, Markdown, map[string]string{
			"open formatting":    behind("<p>"+numbered(480, "<b id=%d>"), "<p>x"),
			"some of it":         behind("<p>"+numbered(30, "<b id=%d>"), "<p>x"),
			"in tables":          behind(numbered(30, "<font id=%d><table></font>")+strings.Repeat("</table>", 30), "<p>x"),
			"quotations":         behind(strings.Repeat("<blockquote>", 480), "<p>x"),
			"fewer quotations":   behind(strings.Repeat("<blockquote>", maxIndent), "<p>x"),
			"lists":              behind(strings.Repeat("<ul><li>", 240), "<li>x"),
			"fewer lists":        behind(strings.Repeat("<ol start=999><li>", maxIndent), "<br>x"),
			"code in lists":      behind(strings.Repeat("<ol start=999><li>", maxIndent)+"<pre>", "\n"),
			"huge numbers":       behind(strings.Repeat("<ol start=1000000000000000000><li>", maxIndent)+"<pre>", "\n"),
			"elements":           behind(strings.Repeat("<x>", maxOpen-2), "<br>x"),
			"headings":           behind(strings.Repeat("<i><h1>", 20), "<br>x"),
			"tables in tables":   behind(strings.Repeat("<table><tr><td>", 15), "<table><td>x</table>"),
			"tags without a use": behind("", "a</x>"),
			"cells without one":  behind("", "a<td>"),
			"what is left out":   behind("", "a<input>"),
			"scripts":            behind("", "a<script></script>"),
			"text in a table":    behind("<table>", "a<tr>"),
			"wide table":         behind("<table>"+strings.Repeat("<td>a", maxColumns), "<tr>"),
			"wide cells":         behind("<table><tr>", "<td colspan=20>"),
			"high cells":         behind("<table>", "<tr><td rowspan=20 colspan=20>"),
			"nested high cells":  behind("<table><tr><td rowspan=20>", "<table><tr><td rowspan=20></table>"),
			"brackets":           behind("", "["),
			"links":              behind("", "<a href=x>a</a>"),
			"empty links":        behind("", "<a href=x></a>"),
			"code":               behind("", "x<b><code>y</code></b><span></span>"),
			"marks":              behind("", "*"),
			"lines":              behind("", "<br>"),
		}},
	} {
		for name, in := range test.texts {
			out := 0
			cost := allocated(func() { out = len(Convert(in, test.from, test.to)) })
			if out > 64*len(in) {
				t.Errorf("%s to %s, %s: %d bytes become %d", test.from, test.to, name, len(in), out)
			}
			if cost > 4096*len(in) {
				t.Errorf("%s to %s, %s: for %d bytes, %d are allocated", test.from, test.to, name, len(in), cost)
			}
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, s := range []string{
		"<table>a<tr>b<td>c<th colspan=3>d</table>e", "<b><p>a</b>b", "<ul><li>a<ul><li>b</ul><pre>\nc</pre></ul>", "<h1><a href=x>#</a></h1>",
		"# a\n\n- [b](c)\n\n|a|b|\n|-|-|\n|c|", "[a]: b 'c'\n\n[a] ![a]", "> - `a` <?\n\\*", "a  b\n c\t&amp;",
	} {
		f.Add(s)
	}
	formats := []Format{Text, Markdown, HTML}
	f.Fuzz(func(t *testing.T, in string) {
		for _, from := range formats {
			for _, to := range formats {
				out := Convert(in, from, to)
				if len(out) > 64*len(in)+6*minAddresses {
					t.Errorf("%s to %s: %q becomes %d bytes", from, to, in, len(out))
				}
				for _, p := range (Limits{Body: 20}).Fit("title", out, to, from, OverflowSplit) {
					if n := len([]rune(p.Body)); n > 20 {
						t.Errorf("%s to %s: %q gives a part of %d characters", from, to, in, n)
					}
				}
			}
		}
	})
}
