package markup

import "testing"

// TestWrite checks how Markdown becomes the markup of chats.
func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		dialect  Dialect
		in, want string
	}{
		{DialectSlack, "**bold** and *italic* ~~gone~~", "*bold* and _italic_ ~gone~"},
		{DialectSlack, "***both***", "_*both*_"},
		{DialectSlack, "2 * 3 & 4 &lt;b> 2\\*3\\*4", "2 * 3 &amp; 4 &lt;b&gt; 2*3*4"},
		{DialectSlack, "AT&amp;\nx &lt;\n\n*&copy;* a\\:\n&#33;", "AT&amp;\nx &lt;\n\n_©_ a:\n!"},
		{DialectSlack, "`a<b` **e**", "`a&lt;b` *e*"},
		{DialectSlack, "```go\nx = **y**\n```", "```\nx = **y**\n```"},
		{DialectSlack, "[a *b*](https://c.d/?e=1&f)", "<https://c.d/?e=1&amp;f|a _b_>"},
		{DialectSlack, "![alt](https://c.d/x.png)", "<https://c.d/x.png|alt>"},
		{DialectSlack, "[nowhere]() [all](!channel) [x](/rel) [y](#C1) [z](@U1)", "nowhere all x y z"},
		{DialectSlack, "un*do*able **a**b", "un\u200b_do_\u200bable *a*\u200bb"},
		{DialectSlack, "`` ` `` ``a`b`` x", "`\u200b`\u200b` `a\u200b`\u200bb` x"},
		{DialectSlack, "[a](<https://c.d/x|y>) [open", "<https://c.d/x%7Cy|a> [open"},
		{DialectSlack, `\*no\* _no \_x\_`, "*\u200bno* _\u200bno _\u200bx_"},
		{DialectSlack, "# H *i*\n\ntext\n\n## I", "*H _i_*\n\ntext\n\n*I*"},
		{DialectSlack, "- a\n  - b\n\n1. c\n2. d\n\n> q\n> r", "- a\n  - b\n\n1. c\n2. d\n\n> q\n> r"},
		{DialectSlack, "a\nb\n\n|x|y|\n|-|-|\n|1|**2**|", "a\nb\n\nx | y\n1 | *2*"},
		{DialectSlack, "https://e.com/a_b_c?x=_y_ [l](https://e.com/a_b_*c*)", "https://e.com/a_b_c?x=_y_ <https://e.com/a_b_*c*|l>"},
		{DialectSlack, "<!channel> **x** <@U1|joe> <https://a.b/?c&d|e>", "<!channel> *x* <@U1|joe> <https://a.b/?c&d|e>"},
		{DialectSlack, `\> no`, "\u200b&gt; no"},
		{DialectGoogleChat, "plain", "plain"},
		{DialectGoogleChat, "**bold** and *italic* ~~x~~ <users/all>", "*bold* and _italic_ ~x~ <users/all>"},
		{DialectGoogleChat, `a \< b & \*c\*`, `a &lt; b &amp; \*c\*`},
		{DialectGoogleChat, "`x < y`", "`x &lt; y`"},
		{DialectGoogleChat, "see [the **log**](https://a.b/?c=1&d=2)", "see <https://a.b/?c=1&amp;d=2|the *log*>"},
		{DialectGoogleChat, "- one\n  - two", "- one\n    - two"},
		{DialectGoogleChat, "# H\n\n```\n  code\n```", "*H*\n\n```\n  code\n```"},
		{DialectGoogleChat, "https://e.com/a_b_c?x=_y_", "https://e.com/a_b_c?x=_y_"},
		{DialectWhatsApp, "a **bold** and *slanted* ~~b~~", "a *bold* and _slanted_ ~b~"},
		{DialectWhatsApp, `2 \* 3 \_ 4 \\ 5`, `2 * 3 _ 4 \ 5`},
		{DialectWhatsApp, "run `rm **x**` now", "run ```rm **x**``` now"},
		{
			DialectWhatsApp, "[site](https://example.com/) [https://example.com/](https://example.com/ \"top\")",
			"site (https://example.com/) https://example.com/",
		},
		{DialectWhatsApp, "[all](!channel) un~~do~~able", "all un\u200b~do~\u200bable"},
		{DialectTelegram2, "un*do*able [x](/rel)", "un_do_able x"},
		{DialectDiscord, "un*do*able [x](/rel)", "un*do*able x"},
		{DialectTelegram1, "A\\_b **bold** [x.y](https://a.b/(c)) `d.e` 1.5!", "A\\_b *bold* [x.y](https://a.b/(c\\)) `d.e` 1.5!"},
		{DialectTelegram2, "A\\_b **bold** [x.y](https://a.b/(c)) `d.e` 1.5!", "A\\_b *bold* [x\\.y](https://a.b/(c\\)) `d.e` 1\\.5\\!"},
		{DialectMattermost, "**a** [b](https://c.d) 2*3*4", "**a** [b](https://c.d) 2*3*4"},
		{"", "**a**", "**a**"},
	} {
		if got := tt.dialect.Write(tt.in, true); got != tt.want {
			t.Errorf("%s: %q becomes %q, want %q", tt.dialect, tt.in, got, tt.want)
		}
	}
}

// TestListNumbers checks that the items of a list have the numbers in Markdown that HTML gives
// them.
func TestListNumbers(t *testing.T) {
	for page, want := range map[string]string{
		"<ol><li>a<li value=5>b<li>c</ol>":           "1. a\n5. b\n6. c",
		"<ol start=3><li>a<li value='7'>b</ol>":      "3. a\n7. b",
		"<ol><li>a<li value=99999999999>b<li>c</ol>": "1. a\n2. b\n3. c",
	} {
		if got := Convert(page, HTML, Markdown); got != want {
			t.Errorf("%s becomes %q, want %q", page, got, want)
		}
	}
}
