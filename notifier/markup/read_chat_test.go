package markup

import (
	"testing"
	"time"
)

// TestReadChat checks the conversion of chat texts to HTML, Markdown and plain text. The HTML has
// only elements that the text names.
func TestReadChat(t *testing.T) {
	for _, tt := range []struct {
		name         string
		dialect      Dialect
		in           string
		html, md, tx string
	}{
		{
			"a tag of Slack", DialectSlack, "&lt;script&gt;run()&lt;/script&gt; <script>x</script> &amp;lt;",
			"<p>&lt;script&gt;run()&lt;/script&gt; &lt;script&gt;x&lt;/script&gt; &amp;lt;</p>",
			`\<script>run()\</script> \<script>x\</script> \&lt;`, "<script>run()</script> <script>x</script> &lt;",
		},
		{
			"a tag of Discord", DialectDiscord, "<script>run()</script> <b>x</b> &lt;",
			"<p>&lt;script&gt;run()&lt;/script&gt; &lt;b&gt;x&lt;/b&gt; &amp;lt;</p>",
			`\<script>run()\</script> \<b>x\</b> \&lt;`, "<script>run()</script> <b>x</b> &lt;",
		},
		{
			"a tag of Mattermost", DialectMattermost, "<script>run()</script> <!-- c --> <img src=x onerror=run()>",
			"<p>&lt;script&gt;run()&lt;/script&gt; &lt;!-- c --&gt; &lt;img src=x onerror=run()&gt;</p>",
			`\<script>run()\</script> \<!-- c --> \<img src=x onerror=run()>`,
			"<script>run()</script> <!-- c --> <img src=x onerror=run()>",
		},
		{
			"a tag of Rocket.Chat", DialectRocketChat, "<script>run()</script>",
			"<p>&lt;script&gt;run()&lt;/script&gt;</p>", `\<script>run()\</script>`, "<script>run()</script>",
		},

		{
			"code on the line of its fence", DialectSlack,
			"Failed: ```Traceback (most):\n  File &lt;x&gt; *a*\nError``` in *job*",
			"<p>Failed:</p>\n<pre><code>Traceback (most):\n  File &lt;x&gt; *a*\nError</code></pre>\n<p>in <strong>job</strong></p>",
			"Failed:\n\n```\nTraceback (most):\n  File <x> *a*\nError\n```\n\nin **job**",
			"Failed:\nTraceback (most):\n  File <x> *a*\nError\nin job",
		},
		{
			"code of Discord", DialectDiscord, "```Traceback x\ny```after\n```py\nprint(1)\n```",
			"<pre><code>Traceback x\ny</code></pre>\n<p>after</p>\n<pre><code class=\"language-py\">print(1)</code></pre>",
			"```\nTraceback x\ny\n```\n\nafter\n\n```py\nprint(1)\n```", "Traceback x\ny\nafter\nprint(1)",
		},
		{"code without an end", DialectDiscord, "a ```b *c*", "<p>a ```b <em>c</em></p>", "a \\`\\`\\`b *c*", ""},
		{
			"a capital is no language", DialectMattermost, "```Traceback\nx\n```",
			"<pre><code>Traceback\nx</code></pre>", "```\nTraceback\nx\n```", "Traceback\nx",
		},
		{"code without an end in Mattermost", DialectMattermost, "a\n```\nb\nc", "<p>a</p>\n<pre><code>b\nc</code></pre>", "", ""},
		{
			"code in a line", DialectSlack, "`a*b*c` and `&lt;x&gt;` ``",
			"<p><code>a*b*c</code> and <code>&lt;x&gt;</code> ``</p>",
			"`a*b*c` and `<x>` \\`\\`", "a*b*c and <x> ``",
		},

		{
			"signs within words", DialectSlack, "2*3*4 a_b_c *bold*, _it_ ~gone~ *_both_* snake_case * x * *open",
			"<p>2*3*4 a_b_c <strong>bold</strong>, <em>it</em> <del>gone</del> <strong><em>both</em></strong> snake_case * x * *open</p>",
			`2\*3\*4 a_b_c **bold**, *it* ~~gone~~ ***both*** snake_case * x * \*open`,
			"2*3*4 a_b_c bold, it gone both snake_case * x * *open",
		},
		{"emphasis ends with the line", DialectSlack, "*a\nb*", "<p>*a<br/>b*</p>", "\\*a  \nb\\*", "*a\nb*"},
		{
			"Markdown at Slack", DialectSlack, "**bold** [x](https://a.b) ## no\n## yes\n# no",
			"<p><strong>bold</strong> <a href=\"https://a.b\">x</a> ## no</p>\n<h2>yes</h2>\n<p># no</p>",
			"**bold** [x](https://a.b) ## no\n\n## yes\n\n\\# no", "bold x (https://a.b) ## no\nyes\n# no",
		},
		{
			"emphasis of Discord", DialectDiscord,
			"**b** *i* _i_ __u__ ***bi*** ~~s~~ ||sp|| ~x~ a*b*c a_b_c **b *i***",
			"<p><strong>b</strong> <em>i</em> <em>i</em> <u>u</u> <strong><em>bi</em></strong> " +
				"<del>s</del> <span>sp</span> ~x~ a<em>b</em>c a_b_c <strong>b <em>i</em></strong></p>",
			"**b** *i* *i* u ***bi*** ~~s~~ sp \\~x~ a*b*c a_b_c **b *i***", "",
		},
		{
			"escapes", DialectDiscord, `\*no\* \_x\_ \<@1> C:\dir \\`, `<p>*no* _x_ &lt;@1&gt; C:\dir \</p>`,
			"\\*no\\* \\_x\\_ \\<@1> C:\\dir \\\\", `*no* _x_ <@1> C:\dir \`,
		},
		{"no escapes of Slack", DialectSlack, `a\*b C:\new`, `<p>a\*b C:\new</p>`, "", `a\*b C:\new`},

		{
			"escapes in an address of Slack", DialectSlack, "&lt;https://a.b/?x=1&amp;y=2&gt; https://c.d/&gt;",
			`<p>&lt;https://a.b/?x=1&amp;y=2&gt; https://c.d/&gt;</p>`, `\<https://a.b/?x=1&y=2> https://c.d/>`,
			"<https://a.b/?x=1&y=2> https://c.d/>",
		},
		{
			"a link of Slack", DialectSlack,
			"see <https://a.b/?x=1&amp;y=2|run [1]> <https://c.d/e_f_g> <mailto:x@y.z|x@y.z> <mailto:x@y.z|mail *me*>",
			`<p>see <a href="https://a.b/?x=1&amp;y=2">run [1]</a> https://c.d/e_f_g x@y.z <a href="mailto:x@y.z">mail <strong>me</strong></a></p>`,
			`see [run \[1\]](https://a.b/?x=1&y=2) https://c.d/e_f_g x@y.z [mail **me**](mailto:x@y.z)`,
			"see run [1] (https://a.b/?x=1&y=2) https://c.d/e_f_g x@y.z mail me (mailto:x@y.z)",
		},
		{
			"a script as a link", DialectSlack, "<javascript:run()|x> [x](javascript:run()) <data:text/html,x|y>",
			"<p>&lt;javascript:run()|x&gt; [x](javascript:run()) &lt;data:text/html,x|y&gt;</p>", "", "",
		},
		{
			"a link of Discord", DialectDiscord,
			`[run \[1\]](https://a.b/c_d_ "t") <https://e.f/g_h_> [x](<https://i.j>) [y](rel)`,
			`<p><a href="https://a.b/c_d_">run [1]</a> https://e.f/g_h_ <a href="https://i.j">x</a> [y](rel)</p>`,
			`[run \[1\]](https://a.b/c_d_) https://e.f/g_h_ [x](https://i.j) \[y](rel)`,
			"run [1] (https://a.b/c_d_) https://e.f/g_h_ x (https://i.j) [y](rel)",
		},
		{
			"addresses", DialectDiscord, "https://e.com/a_b_c?x=_y_ (https://e.com/*a*[1]) **https://e.com/x**",
			"<p>https://e.com/a_b_c?x=_y_ (https://e.com/*a*[1]) <strong>https://e.com/x</strong></p>",
			`https://e.com/a_b_c?x=_y_ (https://e.com/*a*[1]) **https://e.com/x**`,
			"https://e.com/a_b_c?x=_y_ (https://e.com/*a*[1]) https://e.com/x",
		},

		{
			"a quotation of Discord", DialectDiscord, "> q\nr\n>s",
			"<blockquote><p>q</p></blockquote>\n<p>r<br/>&gt;s</p>", "> q\n\nr  \n\\>s", "> q\n\nr\n>s",
		},
		{
			"the rest of Discord", DialectDiscord, "a\n>>> q\nr\n\ns",
			"<p>a</p>\n<blockquote><p>q<br/>r</p><p>s</p></blockquote>",
			"a\n\n> q  \n> r\n>\n> s", "a\n> q\n> r\n\n> s",
		},
		{
			"quotations of Slack", DialectSlack, "&gt; q\n&gt;r\ns\n&gt;&gt;&gt;t\nu",
			"<blockquote><p>q<br/>r</p></blockquote>\n<p>s</p>\n<blockquote><p>t<br/>u</p></blockquote>",
			"> q  \n> r\n\ns\n\n> t  \n> u", "> q\n> r\n\ns\n> t\n> u",
		},
		{
			"code in a quotation", DialectSlack, "> ```\n> a\n> ```\nb",
			"<blockquote><pre><code>a</code></pre></blockquote>\n<p>b</p>", "> ```\n> a\n> ```\n\nb", "",
		},

		{
			"lists", DialectSlack, "x:\n- a\n- b\n  - c\n3. d\n5. e\ny",
			"<p>x:</p>\n<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>\n<ol start=\"3\"><li>d</li><li value=\"5\">e</li></ol>\n<p>y</p>",
			"x:\n\n- a\n- b\n  - c\n\n3. d\n5. e\n\ny", "x:\n- a\n- b\n- c\n3. d\n5. e\ny",
		},
		{"no lists", DialectSlack, "-5 °C\n---\n1.2 x", "<p>-5 °C<br/>---<br/>1.2 x</p>", "-5 °C  \n\\---  \n1.2 x", "-5 °C\n---\n1.2 x"},
		{
			"headings", DialectDiscord, "# A\n-# small\n#1 b\n#### no",
			"<h1>A</h1>\n<p><small>small</small></p>\n<p>#1 b<br/>#### no</p>",
			"# A\n\nsmall\n\n\\#1 b  \n\\#### no", "",
		},
		{
			"a table", DialectMattermost, "| a | b |\n|:--|---|\n| **1** | x \\| y |\nend",
			"<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><strong>1</strong></td><td>x " +
				"| y</td></tr></tbody></table>\n<p>end</p>",
			"| a | b |\n|---|---|\n| **1** | x \\| y |\n\nend", "a | b\n1 | x | y\nend",
		},
		{
			"what looks like a table", DialectDiscord, "a | b\n--|--\n1 | 2 | 3\n|:-:|",
			"<p>a | b<br/>--|--<br/>1 | 2 | 3<br/>|:-:|</p>", "a | b  \n\\--|--  \n1 | 2 | 3  \n\\|:-:|",
			"a | b\n--|--\n1 | 2 | 3\n|:-:|",
		},
		{
			"no picture", DialectDiscord, "look![a](https://b.c)",
			`<p>look!<a href="https://b.c">a</a></p>`, `look\![a](https://b.c)`, "look!a (https://b.c)",
		},
		{"backticks in code", DialectDiscord, "`a``b` ``c`d``", "<p><code>a``b</code> <code>c`d</code></p>", "`a``b` ``c`d``", "a``b c`d"},
		{"emojis", DialectSlack, ":warning: `:warning:` 12:30:45 :white_check_mark:", "<p>⚠️ <code>:warning:</code> 12:30:45 ✅</p>", "", ""},
		{
			"mentions", DialectMattermost, "<!channel> @here <@U1|bob> <https://a.b|x> <https://a.b>",
			"<p>@channel @here @bob <a href=\"https://a.b\">x</a> https://a.b</p>", "", "",
		},
		{
			"other addresses", DialectSlack, "www.e.com/?x=_y_ rtsp://u@cam/_s_ ftp://h/*a* (smb://n/~b~), a://",
			"<p>www.e.com/?x=_y_ rtsp://u@cam/_s_ ftp://h/*a* (smb://n/~b~), a://</p>", "",
			"www.e.com/?x=_y_ rtsp://u@cam/_s_ ftp://h/*a* (smb://n/~b~), a://",
		},
		{
			"emphasis within emphasis", DialectMattermost, "***a** b* ***c* d**",
			"<p><em><strong>a</strong> b</em> <strong><em>c</em> d</strong></p>", "***a** b* ***c* d**", "a b c d",
		},
		{"tabs", DialectMattermost, "a\tb\n\tc", "<p>a\u00a0\u00a0\u00a0 b<br/>\u00a0\u00a0\u00a0 c</p>", "", "a    b\n    c"},
		{"columns", DialectSlack, "a   b\n  c", "<p>a\u00a0\u00a0 b<br/>\u00a0 c</p>", "", "a   b\n  c"},
	} {
		for format, want := range map[Format]string{HTML: tt.html, Markdown: tt.md, Text: tt.tx} {
			if got := tt.dialect.Convert(tt.in, format, time.UTC); want != "" && got != want {
				t.Errorf("%s, in %s:\n got %q\nwant %q", tt.name, format, got, want)
			}
		}
	}
}
