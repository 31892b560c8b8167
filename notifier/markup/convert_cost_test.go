package markup

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestConvertCost checks that the memory and the result of a conversion are
// proportional to the length of the text.
func TestConvertCost(t *testing.T) {
	racetest.SkipIfSlow(t)
	const size = 64 << 10
	// repeatAfter returns start followed by as many units as fit into size.
	repeatAfter := func(start, unit string) string { return start + strings.Repeat(unit, (size-len(start))/len(unit)) }
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
			"quotes": repeatAfter("", `"`), "lines": repeatAfter("", "\n"), "tabs": repeatAfter("", "\t"),
			"spaces": repeatAfter("", " "), "references": repeatAfter("", "&"),
		}},
		{HTML, Text, map[string]string{
			"quoted lines": repeatAfter(strings.Repeat("<blockquote>", 100)+"<pre>", "a\n"),
			"rules":        repeatAfter("", "<hr>"), "items": repeatAfter("", "<li>"),
			"attributes": repeatAfter("<a", " a"), "tags": repeatAfter("", "<a>"),
			"half tags": repeatAfter("", "<a "), "references": repeatAfter("", "&a;"),
			"comments": repeatAfter("", "<!-->"),
		}},
		{Markdown, HTML, map[string]string{
			"references":        repeatAfter(address, "[a]\n\n"),
			"references in one": repeatAfter(address, "[a]"),
			"pictures":          repeatAfter(address, "![][a] "),
			"short references":  repeatAfter("[a]: http://"+strings.Repeat("x", 500)+" '"+strings.Repeat("''", 250)+"'\n\n", "[a]\n\n"),
			"titles":            repeatAfter("[a]: b '"+strings.Repeat(`"`, 1000)+"'\n\n", "[a]\n\n"),
			"definitions":       repeatAfter("", "[a]: b\n"),
			"half links":        repeatAfter("", "[a]("),
			"brackets":          repeatAfter("", "["),
			"emphasis":          repeatAfter("", "*a_b"),
			"instructions":      repeatAfter("", "*a <?\n"),
			"declarations":      repeatAfter("", "a <!A\n"),
			"half comments":     repeatAfter("", "a <!--\n"),
			"code":              repeatAfter(fences, "a\n"),
			"quotations":        repeatAfter("", strings.Repeat(">", maxNesting)+"a\n\n"),
			"lists":             repeatAfter("", strings.Repeat("- ", maxNesting/2)+"a\n\n"),
			"ragged table":      repeatAfter(strings.Repeat("|a", 200)+"\n"+strings.Repeat("|-", 200)+"\n", "|\n"),
			"tables":            repeatAfter("", "a|b\n-|-\n|\n\n"),
			"headings":          repeatAfter("", "#\n"),
			"marks":             repeatAfter("", `"`),
		}},
		{HTML, Markdown, map[string]string{
			"open formatting":    repeatAfter("<p>"+numbered(480, "<b id=%d>"), "<p>x"),
			"some of it":         repeatAfter("<p>"+numbered(30, "<b id=%d>"), "<p>x"),
			"in tables":          repeatAfter(numbered(30, "<font id=%d><table></font>")+strings.Repeat("</table>", 30), "<p>x"),
			"quotations":         repeatAfter(strings.Repeat("<blockquote>", 480), "<p>x"),
			"fewer quotations":   repeatAfter(strings.Repeat("<blockquote>", maxIndent), "<p>x"),
			"lists":              repeatAfter(strings.Repeat("<ul><li>", 240), "<li>x"),
			"fewer lists":        repeatAfter(strings.Repeat("<ol start=999><li>", maxIndent), "<br>x"),
			"code in lists":      repeatAfter(strings.Repeat("<ol start=999><li>", maxIndent)+"<pre>", "\n"),
			"huge numbers":       repeatAfter(strings.Repeat("<ol start=1000000000000000000><li>", maxIndent)+"<pre>", "\n"),
			"elements":           repeatAfter(strings.Repeat("<x>", maxOpen-2), "<br>x"),
			"headings":           repeatAfter(strings.Repeat("<i><h1>", 20), "<br>x"),
			"tables in tables":   repeatAfter(strings.Repeat("<table><tr><td>", 15), "<table><td>x</table>"),
			"tags without a use": repeatAfter("", "a</x>"),
			"cells without one":  repeatAfter("", "a<td>"),
			"what is left out":   repeatAfter("", "a<input>"),
			"scripts":            repeatAfter("", "a<script></script>"),
			"text in a table":    repeatAfter("<table>", "a<tr>"),
			"wide table":         repeatAfter("<table>"+strings.Repeat("<td>a", maxColumns), "<tr>"),
			"wide cells":         repeatAfter("<table><tr>", "<td colspan=20>"),
			"high cells":         repeatAfter("<table>", "<tr><td rowspan=20 colspan=20>"),
			"nested high cells":  repeatAfter("<table><tr><td rowspan=20>", "<table><tr><td rowspan=20></table>"),
			"brackets":           repeatAfter("", "["),
			"links":              repeatAfter("", "<a href=x>a</a>"),
			"empty links":        repeatAfter("", "<a href=x></a>"),
			"code":               repeatAfter("", "x<b><code>y</code></b><span></span>"),
			"marks":              repeatAfter("", "*"),
			"lines":              repeatAfter("", "<br>"),
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
