package markup

import (
	"html"
	"strings"
	"testing"
	"time"
)

// TestEscape checks that a plain text in a dialect is read as the same plain text, whatever it
// would be as markup.
func TestEscape(t *testing.T) {
	for _, text := range []string{
		"*a*", "**a**", "_a_", "__a__", "~a~", "~~a~~", "||a||", "`a`", "``a``",
		"a `b", "```\na\n```", "```a```", "a ``` b", "> a", ">>> a", "a\n> b",
		"# a", "## a", "-# a", "- a", "+ a", "* a", "1. a", "2) a", "a\n- b", "a | b\n--|--\nc | d", "| a |\n|---|\n| b |",
		"<https://a.example|b>", "<https://a.example>", "<!here>", "<!channel|c>",
		"<@U1>", "<#C1>", "<@1>", "<t:1618953630>", "<:a:1>", "<b>a</b>",
		"&lt;a&gt; &amp; &#42;", "[a](https://b.example)", "![a](https://b.example)", "[a](<https://b.example>)", ":smile:", ":x: :no_such_name:",
		"2*3*4 a_b_c", "https://e.com/a_b_c?x=_y_", "https://e.com/?x=1&y=2", "<https://e.com/?x&>",
		"https://e.com/&", `\*a\*`, `C:\a\*.b`, "*a\nb*", "a*", "*", "a: b", "<!date^1618953630^{date}|a>",
	} {
		for d := range chats {
			in := d.Escape(text)
			page := strings.NewReplacer("<p>", "", "</p>", "", "<br/>", "\n", "\u00a0", "").Replace(d.Convert(in, HTML, time.UTC))
			lines := strings.Split(page, "\n")
			for i, line := range lines {
				lines[i] = strings.TrimRight(line, " ")
			}
			if got := html.UnescapeString(strings.Join(lines, "\n")); strings.Contains(page, "<") || got != text {
				t.Errorf("%s: %q is written as %q, and read as %q", d, text, in, page)
			}
			if got := d.Title(d.Escape(OneLine(text))); got != OneLine(text) {
				t.Errorf("%s: %q is written as %q, and as a title is %q", d, text, in, got)
			}
		}
	}
}
