package markup

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestEscapeMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"Disk /data is at 91% on host-7":     "Disk /data is at 91% on host-7",
		"[click](https://evil.example)":      `\[click\](https://evil.example)`,
		"![x](y) [r][s] <b> <@1> *a* `c`":    "!\\[x\\](y) \\[r\\]\\[s\\] \\<b> \\<@1> \\*a\\* \\`c\\`",
		"my_var_name _x_ a * b ~~s~~ |x|":    `my_var_name \_x\_ a * b \~\~s\~\~ \|x\|`,
		"# h\n#1\n> q\n- i\n* i\n+ i\n-5 °C": "\\# h\n\\#1\n\\> q\n\\- i\n\\* i\n\\+ i\n-5 °C",
		"1. a\n12) b\n3.14\n---\n===\n=x":    "1\\. a\n12\\) b\n3.14\n\\---\n\\===\n=x",
		"  two\n    four\n\ttab":             "  two\n\u00a0\u00a0\u00a0\u00a0four\n\u00a0\u00a0\u00a0\u00a0tab",
		`C:\dir \\host\share \_ \`:           `C:\dir \\\host\share \\\_ \\`,
		"&lt;b&gt; R&D a&b; &#64;":           `\&lt;b\&gt; R&D a\&b; \&#64;`,
		"https://a.b/x_y_z?q=~1&r_s=x#f":     "https://a.b/x_y_z?q=~1&r_s=x#f",
		"(http://[fd00::1]:9090/g_h) x":      "(http://[fd00::1]:9090/g_h) x",
		"http://[::1](https://evil.example)": `http://\[::1\](https://evil.example)`,
		"http://[::1][r] xhttp://a_b_":       `http://\[::1\]\[r\] xhttp://a_b\_`,
		"https://a.b/[x](https://c.d)*":      `https://a.b/\[x\](https://c.d)\*`,
		"a\r\nb\rc":                          "a\nb\nc",
	} {
		if got := EscapeMarkdown(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		shown := htmlToText(markdownToHTML(EscapeMarkdown(in)))
		if want := strings.TrimSpace(lineEnds.Replace(strings.ReplaceAll(in, "\t",
			"    "))); strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q is shown as %q", in, shown)
		}
	}
}

func TestConvertForeign(t *testing.T) {
	const link = `<a href="https://evil.example/a_b_c?x=1&amp;y=2">https://bank.example</a>`
	for _, test := range []struct {
		name, text string
		from, to   Format
		keep       bool
		want       string
	}{
		{"link in HTML", link, HTML, HTML, false, "https://bank.example (https://evil.example/a_b_c?x=1&amp;y=2)"},
		{
			"link in a mail", `<p style="color:red">` + link, HTML, HTML, true,
			`<p style="color:red">` + link + " (https://evil.example/a_b_c?x=1&amp;y=2)",
		},
		{"link to Markdown", link, HTML, Markdown, false, "https://bank.example (https://evil.example/a_b_c?x=1&y=2)"},
		{"link in Markdown", "[click](https://evil.example/a_b)", Markdown, Markdown, false, "click (https://evil.example/a_b)"},
		{
			"reference in Markdown", "[a] ![p](https://c.d/x.png)\n\n[a]: https://evil.example",
			Markdown, Markdown, false, "a (https://evil.example) p",
		},
		{"same text", `<a href="https://a.b/">a.b</a> <a href="mailto:x@y.z">x@y.z</a>`, HTML, Markdown, false, "a.b x@y.z"},
		{"no text", `<a href="https://a.b/"><img src=x></a><a href=https://c.d>`, HTML, Markdown, false, "https://a.b/https://c.d"},
		{
			"other schemes",
			`<a href="tg://user?id=1">x</a> <a href="!channel">y</a> <a href="javascript:alert(1)">z</a>`,
			HTML, HTML, false, "x y z",
		},
		{"link in a link", `<a href=https://a.b>x<a href=https://c.d>y</a>z</a>`, HTML, HTML, false, "x (https://a.b)y (https://c.d)z"},
		{
			"unknown elements",
			`<at id=all></at><user userid=1>u</user><script>s</script><style>s</style><!channel><b onclick=x>b</b>`,
			HTML, HTML, false, "u<b>b</b>",
		},
		{"brackets", "&#91;cli<b>ck</b>](https://evil.example) a[0]", HTML, Markdown, false, `\[cli**ck**](https://evil.example) a\[0]`},
		{
			"formatting", "# Title\n\n- **b** `c[0]`\n\n|a|b|\n|-|-|\n|1|2|", Markdown,
			Markdown, false, "# Title\n\n- **b** `c[0]`\n\n| a | b |\n|---|---|\n| 1 | 2 |",
		},
		{
			"nested too deeply", strings.Repeat("<i>", 100) + "[click](https://evil.example) &lt;!channel&gt;",
			HTML, Markdown, false, `\[click\](https://evil.example) \<!channel>`,
		},
		{
			"Markdown that is too complex", strings.Repeat(">", 200) + "[click](https://evil.example)",
			Markdown, HTML, false, strings.Repeat("&gt;", 200) + "[click](https://evil.example)",
		},
	} {
		if got := ConvertForeign(test.text, test.from, test.to, test.keep); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestConvertForeignCost checks that the memory and the result are proportional to
// the length of the text.
func TestConvertForeignCost(t *testing.T) {
	racetest.SkipIfSlow(t)
	const size = 64 << 10
	for _, unit := range []string{
		"&", "&a;", "_", "*", "\\", "[", "](", "http://", "http", "https://a\\_", "\n",
		"# ", "1. ", "<a href=x>", "<a href=https://x>", "<", "@", "\t", "<img>", "<script>",
	} {
		in := strings.Repeat(unit, size/len(unit))
		for name, f := range map[string]func() string{
			"escaped":  func() string { return EscapeMarkdown(in) },
			"Markdown": func() string { return ConvertForeign(in, Markdown, Markdown, false) },
			"HTML":     func() string { return ConvertForeign(in, HTML, Markdown, false) },
			"mail":     func() string { return ConvertForeign(in, HTML, HTML, true) },
		} {
			out := 0
			cost := allocated(func() { out = len(f()) })
			if out > 64*size || cost > 4096*size {
				t.Errorf("%s, %q: %d bytes become %d, and %d are allocated", name, unit, size, out, cost)
			}
		}
	}
}

// FuzzConvertForeign checks that no text of a stranger becomes a link whose text
// hides its address.
func FuzzConvertForeign(f *testing.F) {
	for _, s := range []string{
		"[a](https://evil.example)", "[a][b]\n\n[b]: https://evil.example",
		"<a href=https://evil.example>a</a>", "<https://a.b> `[a](b)`", "\\[a](https://b.c)",
		"https://a.b/[c](https://d.e)", "![[a](b)](https://c.d)", "    [a](https://b.c)", "&#91;a](https://b.c)", "<pre>[a](https://b.c)</pre>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		results := map[string]string{"text": EscapeMarkdown(in)}
		for _, from := range []Format{Markdown, HTML} {
			results[string(from)] = ConvertForeign(in, from, Markdown, false)
			if out := ConvertForeign(in, from, HTML, false); strings.Contains(strings.ToLower(out), "<a") && strings.Contains(out, "href") {
				t.Errorf("HTML of %q from %s has a link: %q", in, from, out)
			}
		}
		for from, md := range results {
			if out := markdownToHTML(md); strings.Contains(out, "<a href") || strings.Contains(out, "<img") {
				if strings.Contains(md, "<http") || strings.Contains(md, "<mailto") {
					continue // an address that is a link to itself
				}
				t.Errorf("%q from %s becomes %q, which has a link: %q", in, from, md, out)
			}
			if len(md) > 64*len(in)+6*minAddresses {
				t.Errorf("%q from %s becomes %d bytes", in, from, len(md))
			}
		}
	})
}
