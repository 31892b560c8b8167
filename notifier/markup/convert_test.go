package markup

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestConvert(t *testing.T) {
	const md = "# Release 1.4\n\n- **bold** item\n- a [link](https://example.com/x?a=1&b=2)\n\n`code` and _emphasis_"
	for _, test := range []struct {
		name     string
		from, to Format
		in, want string
	}{
		{"text stays", Text, Text, "a <b>\n", "a <b>\n"},
		{"HTML stays", HTML, HTML, "<b>a", "<b>a"},
		{"Markdown is text already", Markdown, Text, md, md},
		{"text may be Markdown", Text, Markdown, "*a* <b>", "*a* <b>"},
		{"no format is text", "", HTML, "a<b", "a&lt;b"},

		{"text to HTML", Text, HTML, "1 <b>&\"q\" 'r'</b>\n\tx", "1 &lt;b&gt;&amp;&#34;q&#34; &#39;r&#39;&lt;/b&gt;<br/>&emsp;x"},
		{"columns", Text, HTML, "a   b c\n  d\n e ", "a\u00a0\u00a0 b c<br/>\u00a0 d<br/>\u00a0e "},
		{"line ends of text", Text, HTML, "a\r\n  b\rc\n", "a<br/>\u00a0 b<br/>c<br/>"},
		{"line ends of Markdown", Markdown, HTML, "- a\r\n- b\r\rc\rd", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<p>c<br />\nd</p>"},
		{"only spaces", Text, HTML, "  ", "\u00a0 "},

		{"Markdown to HTML", Markdown, HTML, md, "<h1>Release 1.4</h1>\n<ul>\n<li><strong>bold</strong> item</li>\n" +
			"<li>a <a href=\"https://example.com/x?a=1&amp;b=2\">link</a></li>\n</ul>\n<p><code>code</code> and <em>emphasis</em></p>"},
		{"Markdown line breaks", Markdown, HTML, "a\nb", "<p>a<br />\nb</p>"},
		{
			"Markdown tables", Markdown, HTML, "|a|\n|-|\n|b|",
			"<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>",
		},
		{
			"addresses in Markdown", Markdown, HTML, "https://a.b/?x=_y_&z=*1*<b> **https://a.b** ~~x~~ ~1~",
			"<p>https://a.b/?x=_y_&amp;z=*1*<b> <strong>https://a.b</strong> <del>x</del> ~1~</p>",
		},
		{
			"other addresses in Markdown", Markdown, HTML, "www.e.com/?x=_y_ **rtsp://u@cam/_s_** (ftp://h/*a*)",
			"<p>www.e.com/?x=_y_ <strong>rtsp://u@cam/_s_</strong> (ftp://h/*a*)</p>",
		},
		{"HTML within Markdown", Markdown, HTML, "a <u>b</u>", "<p>a <u>b</u></p>"},

		{
			"HTML to text", HTML, Text, "<h1>Nightly</h1><p>All <b>12</b> volumes &amp; 3 sites<br/>saved</p>",
			"Nightly\nAll 12 volumes & 3 sites\nsaved",
		},
		{"unknown elements", HTML, Text, "Backup <ok>", "Backup"},
		{"character references", HTML, Text, "&lt;&#9731;&eacute;&nbsp;x &bogus; &", "<☃é x &bogus; &"},
		{"white space", HTML, Text, " a \n\t b<b> c</b>  d ", "a b c d"},
		{"blocks", HTML, Text, "<div>a</div>b<p>c</p><p> </p><div><div>d</div></div>", "a\nb\nc\nd"},
		{"line breaks", HTML, Text, "a<br>b<br><br/>c", "a\nb\n\nc"},
		{"columns", HTML, Text, "a\u00a0&nbsp; b<br/>\u00a0 c", "a   b\n  c"},
		{"lists", HTML, Text, "x<ul><li>a<li><p>b</p><ul><li>c</ul></ul>y", "x\n- a\n- b\n- c\ny"},
		{"numbers", HTML, Text, "<ol start=3><li>a<ul><li>x</ul><li value=7>b</ol>", "3. a\n- x\n7. b"},
		{"rows", HTML, Text, "<table><tr><th>a</th><th><p>b</p></th></tr><tr><td>1</td><td></td><td>2</td></tr></table>c", "a | b\n1 | 2\nc"},
		{
			"other blocks", HTML, Text,
			"<details><summary>a</summary>b</details><fieldset><legend>c</legend>d</fieldset><select><option>e<option>f</select><center>g</center>h",
			"a\nb\nc\nd\ne\nf\ng\nh",
		},
		{"rule", HTML, Text, "a<hr>b", "a\n---\nb"},
		{"quotation", HTML, Text, "a<blockquote>b<p>c</p></blockquote>d", "a\n> b\n> c\nd"},
		{"preformatted", HTML, Text, "<pre>a\n  b</pre>c", "a\n  b\nc"},
		{
			"elements without text", HTML, Text,
			"<html><head><title>t</title><style>s</style></head><body>a<script>if (a<b) {}</script><!-- c -->b<textarea>x</textarea></body>",
			"ab",
		},
		{"head without end", HTML, Text, "<head><title>t</title><p>a", "a"},
		{"ends without beginnings", HTML, Text, "</blockquote></pre></ul>a  b</p>", "a b"},
		{"half a tag", HTML, Text, "a <b", "a"},
		{
			"a link", HTML, Text, `The <a class="b" href="https://example.com/?a=1&amp;b=2">dashboard</a>, or not`,
			"The dashboard (https://example.com/?a=1&b=2), or not",
		},
		{"a button", HTML, Text, `<div><a href="https://example.com/x"><div>View</div></a>more</div>`, "View\nhttps://example.com/x\nmore"},
		{
			"a picture as a button", HTML, Text,
			`<a href="https://example.com/x"><img src="b.png" alt="View it"></a> <img src="c.png" alt="no link">`,
			"View it (https://example.com/x)",
		},
		{"a link without a text", HTML, Text, `a <a href="https://example.com/x"><img src="b.png"></a> b`, "a https://example.com/x b"},
		{
			"a link that shows its address", HTML, Text,
			`<a href="https://example.com/x/">https://example.com/x/</a> <a ` +
				`href="https://Example.com/">example.com</a> <a href="mailto:ops@example.com">ops@example.com</a>`,
			"https://example.com/x/ example.com ops@example.com",
		},
		{
			"links of other schemes", HTML, Text,
			`<a href="mailto:ops@example.com">Ops</a> <a href="tel:+441234">call</a>`,
			"Ops (mailto:ops@example.com) call (tel:+441234)",
		},
		{
			"links of no use", HTML, Text,
			`<a href="#top">up</a> <a href="/x">here</a> <a href="x:y/z?a b">odd</a> <a ` +
				`href="javascript:alert(1)">run</a> <a href="data:text/html,x">data</a> ` +
				`<a name=n>n</a> <a href="a b:c">c</a>`,
			"up here odd (x:y/z?a%20b) run data n c",
		},
		{"lines in an address", HTML, Text, "<a href=\" https://example.com/\n\tx\u202e \">x</a>", "x (https://example.com/x)"},
		{
			"links that are not closed", HTML, Text, `<a href="https://a.example">a<a href="https://b.example">b`,
			"a (https://a.example)b (https://b.example)",
		},
		{"a link in the head", HTML, Text, `<head><a href="https://a.example">a</a></head>b`, "b"},
		{
			"a link in a list", HTML, Text,
			`<ul><li><a href="https://a.example">a</a></li><li><a href="https://b.example"></a></li></ul>`,
			"- a (https://a.example)\n- https://b.example",
		},

		{
			"HTML to Markdown", HTML, Markdown,
			"<h1>Nightly</h1><p>All <b>12</b> volumes &amp; 3 sites<br/>saved</p>",
			"# Nightly\n\nAll **12** volumes & 3 sites  \nsaved",
		},
		{
			"no-break spaces", HTML, Markdown, "Disk&nbsp;almost&nbsp;full<br/>&nbsp;on&nbsp;<b>h&nbsp;7</b>",
			"Disk almost full  \n\u00a0on **h 7**",
		},
		{"columns in Markdown", HTML, Markdown, "a&nbsp;&nbsp;&nbsp;b c<br/>&nbsp;&nbsp;d&nbsp; e", "a\u00a0\u00a0 b c  \n\u00a0 d\u00a0 e"},
		{"Markdown lists", HTML, Markdown, "<ul><li>a</li><li><i>b</i></li></ul><ol><li>c</li></ol>", "- a\n- *b*\n\n1. c"},
		{
			"punctuation before a word", HTML, Markdown,
			"<b>Disk:</b>full <b><i>Host?</i></b>a <i>(x)</i><b>y</b> <b>!</b>z " +
				"<u><b>c:</b></u><span>d</span> <b>✅</b>ok <b>a:</b> b <b><code>c</code></b>d <b>e.</b>",
			"**Disk**:full ***Host***?a *(x*)**y** !z **c**:d ✅ok **a:** b **`c`**d **e.**",
		},
		{"code after code", HTML, Markdown, "<code>a</code><code>b</code> <code>c</code>", "`a`\u200b`b` `c`"},
		{"numbers of items", HTML, Markdown, "<ol><li value=10>a<li>b</ol>", "10. a\n11. b"},
		{
			"Markdown links", HTML, Markdown, `<a href="https://example.com/?a=1&amp;b=2">x</a> <a name="n">y</a>`,
			"[x](https://example.com/?a=1&b=2) y",
		},
		{"addresses", HTML, Markdown, `https://e.com/a_b_c?x=_y_*z*[1] <s>x</s>`, "https://e.com/a_b_c?x=_y_*z*[1] ~~x~~"},
		{"Markdown pictures", HTML, Markdown, `<img src="https://example.com/a.png" alt="x">`, "![x](https://example.com/a.png)"},
		{
			"tables", HTML, Markdown, "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
			"| a | b |\n|---|---|\n| 1 | 2 |",
		},
		{
			"end tags left out", HTML, Markdown, "<p>a<p>b<ul><li>c<li>d</ul><dl><dt>e<dd>f</dl><h2>g<h3>h",
			"a\n\nb\n\n- c\n- d\n\ne\n\nf\n\n## g\n\n### h",
		},
		{
			"tables with end tags left out", HTML, Markdown,
			"<table><thead><tr><th>a<th>b<tbody><tr><td>1<td>2</table>c", "| a | b |\n|---|---|\n| 1 | 2 |\n\nc",
		},
		{"text between cells", HTML, Markdown, "<table>x<tr>y<td>1</table>", "|  |  |\n|---|---|\n| x |  |\n| y | 1 |"},
		{"cells without a table", HTML, Markdown, "<tr><td>a</td></tr>", "a"},
		{"tables within tables", HTML, Markdown, "<table><tr><td><table><tr><td>a</table></table>b", "a\n\nb"},
		{
			"tables for layout", HTML, Markdown,
			`<table><tr><td> </td><td align="center"><table><tr><td>a</td></tr><tr><td><b>b</b></td></tr></table></td><td></td></tr></table>`,
			"a\n\n**b**",
		},
		{
			"tables in tables for layout", HTML, Markdown,
			"<table><tr><td><table><tr><th>a</th></tr><tr><td>1</td></tr></table></td></tr></table>",
			"| a |\n|---|\n| 1 |",
		},
		{"wrong nesting", HTML, Markdown, "<b><i>a</b>b</i> <a href=u>c<a href=v>d</a></p></td>e", "***a***b [c](u)[d](v)e"},
		{"tags that mean nothing here", HTML, Markdown, "a<wbr>b</x><!-- c --><input>c<script>d</script>\x00e", "abce"},
		{"code", HTML, Markdown, "<pre>\n\na\n  b</pre><code>c</code>", "```\n\na\n  b\n```\n\n`c`"},
		{
			"a whole document", HTML, Markdown,
			"<!DOCTYPE html><html><head><title>t</title><style>s</style></head><body>\n<p>a</p>\n</body></html>",
			"a",
		},
		{
			"numbers", HTML, Markdown,
			"<ol start=9><li>a<li>b</ol><ol start=0><li>c</ol><ol start=99999999><li>d</ol>",
			"09. a\n10. b\n\n0. c\n\n1. d",
		},
		{"what Markdown would read as markup", HTML, Markdown, "a*b*c [x](y) &lt;u&gt;", `a\*b\*c \[x](y) \<u>`},
		{"a tag behind a backslash", HTML, Markdown, `a\&lt;u&gt;`, `a\\\<u>`},
		{"what Markdown would read as a quotation", HTML, Markdown, "&gt; a &gt; b", `\> a > b`},
	} {
		if got := Convert(test.in, test.from, test.to); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

// TestTextBesideHTML checks that the addresses of links are left to the HTML.
func TestTextBesideHTML(t *testing.T) {
	if got := TextBesideHTML(`<p>The <a href="https://example.com"><b>dashboard</b></a></p>x`); got != "The dashboard\nx" {
		t.Errorf("got %q", got)
	}
}

func TestConvertRemovesUnsafeLinks(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)",
		"JavaScript:alert(1)",
		" javascript:alert(1)",
		"java\tscript:alert(1)",
		"java&#10;script:alert(1)",
		"&#x1;javascript:alert(1)",
		"\u200bjavascript:alert(1)",
		"&amp;#106;avascript:alert(1)",
		`javascript\:alert(1)`,
		"vbscript:x",
		"data:text/html,x",
		"file:///etc/passwd",
	} {
		if got := Convert(`<a href="`+address+`">text</a>`, HTML, Markdown); got != "text" {
			t.Errorf("link to %q: got %q, want its text only", address, got)
		}
		if got := Convert(`<img src="`+address+`" alt="text">`, HTML, Markdown); got != "text" {
			t.Errorf("picture at %q: got %q, want its text only", address, got)
		}
	}
	for _, address := range []string{"https://example.com/javascript:x", "mailto:a@example.com", "tel:1", "/data:x", "app://x"} {
		if got, want := Convert(`<a href="`+address+`">text</a>`, HTML, Markdown), "[text]("+address+")"; got != want {
			t.Errorf("link to %q: got %q, want %q", address, got, want)
		}
	}
}

// TestConvertIsBounded checks that texts that would take too much time, depth
// or space use the simple conversion.
func TestConvertIsBounded(t *testing.T) {
	racetest.SkipIfSlow(t)
	const mega = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, mega/len(s)) }
	for name, in := range map[string]string{
		"quotations": fill(">") + "a",
		"lists":      fill("- ") + "a",
		"numbers":    fill("1. ") + "a",
		"brackets":   fill("[a]("),
		"emphasis":   fill("*a_b"),
		"backticks":  fill("` "),
		"indented":   strings.Repeat(" ", mega/2) + "- a",
		"references": "[a]: http://" + fill("x")[:mega/2] + "\n\n" + fill("[a] ")[:mega/2-99],
		"wide table": strings.Repeat("|a", 9999) + "\n" + strings.Repeat("|-", 9999) + "\n" + strings.Repeat("|\n", 99999),
		"too long":   fill("*a*\n\n") + "*a*\n\n",
	} {
		if got := Convert(in, Markdown, HTML); got != textToHTML(in) {
			t.Errorf("Markdown, %s: not converted as plain text, but into %d bytes", name, len(got))
		}
	}
	for name, in := range map[string]string{
		"depth":      fill("<div>") + "a",
		"lists":      strings.Repeat("<ul>", maxIndent+1) + "a",
		"formatting": fill("<b id=1>") + "a",
		"wide table": "<table><tr>" + strings.Repeat("<td>a", 9999) + strings.Repeat("<tr><td>", 9999),
		"too long":   fill("<b>a</b>") + "<b>a</b>",
	} {
		if got := Convert(in, HTML, Markdown); got != htmlToText(in) {
			t.Errorf("HTML, %s: not converted to plain text, but into %d bytes", name, len(got))
		}
	}
	spans := "<table>" + strings.Repeat("<tr><td rowspan=65534 colspan=1000>a</td></tr>", 1000) + "</table>"
	if got := Convert(spans, HTML, Markdown); len(got) > len(spans) {
		t.Errorf("cells that span a lot: %d bytes become %d", len(spans), len(got))
	}
	for name, in := range map[string]string{
		"elements":  fill("<blockquote><li>"),
		"tags":      fill("<a "),
		"comments":  fill("<!--"),
		"brackets":  fill("<"),
		"ampersand": fill("&"),
		"links":     fill("<a href=b:c>"),
	} {
		if got := Convert(in, HTML, Text); len(got) > 2*len(in) {
			t.Errorf("HTML to text, %s: %d bytes become %d", name, len(in), len(got))
		}
	}
}

// TestConvertKeepsLongReports checks that a long report that a person could
// write is within the limits.
func TestConvertKeepsLongReports(t *testing.T) {
	report := strings.Repeat("## Host\n\n- [log](https://example.com/a_b): **12** of *20* `ok`\n"+
		"- > quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n", 1000)
	got := Convert(report, Markdown, HTML)
	if n := strings.Count(got, "<table>"); n != 1000 {
		t.Errorf("%d of 1000 tables were rendered", n)
	}
	back := Convert(got, HTML, Markdown)
	if n := strings.Count(back, "[log](https://example.com/a_b)"); n != 1000 {
		t.Errorf("%d of 1000 links were written", n)
	}

	list := strings.Repeat("- [a](https://example.com/a_b) `ok`\n", 5000)
	if n := strings.Count(Convert(list, Markdown, HTML), "<li>"); n != 5000 {
		t.Errorf("%d of 5000 items were rendered", n)
	}
	references := strings.Repeat("the [log][1] of it\n\n", 1000) + "[1]: https://example.com/a/path/of/some/length?to=the&log=1234567890"
	if n := strings.Count(Convert(references, Markdown, HTML), "<a href="); n != 1000 {
		t.Errorf("%d of 1000 references were rendered", n)
	}
	mail := strings.Repeat("<table><tbody><tr><td><div>", 6) + strings.Repeat("<p><b>a</b></p>", 100)
	if n := strings.Count(Convert(mail, HTML, Markdown), "**a**"); n != 100 {
		t.Errorf("%d of 100 paragraphs within tables were written", n)
	}
}

// TestLongCode checks that code stays code, however much in it looks like markup.
func TestLongCode(t *testing.T) {
	code := strings.Repeat("a <b> `c [d\n", 1000)
	for _, fence := range []string{"```", "~~~~"} {
		page := Convert("**e**\n\n"+fence+"xml\n"+code+fence+"\n\n*f*", Markdown, HTML)
		if !strings.HasPrefix(page, "<p><strong>e</strong></p>\n<pre><code class=\"language-xml\">a &lt;b&gt;") ||
			!strings.HasSuffix(page, "</code></pre>\n<p><em>f</em></p>") {
			t.Errorf("it begins with %.60q and ends with %q", page, page[len(page)-60:])
		}
	}
	for _, start := range []string{"<div>\n```\n\n", "- a\n\n  ```\n", "```\n```\n", "``` `\n", "    ```\n", "~~~\n```\n~~~\n"} {
		if isSimpleMarkdown(start + code) {
			t.Errorf("what follows %q is not code", start)
		}
	}
}
