package services

import "testing"

func TestGoogleChatText(t *testing.T) {
	for md, want := range map[string]string{
		"plain":                 "plain",
		"**bold** and *italic*": "*bold* and _italic_",
		`a \< b & \*c\*`:        `a &lt; b &amp; \*c\*`,
		"`x < y`":               "`x &lt; y`",
		"see [the **log**](https://a.b/?c=1&d=2)": "see <https://a.b/?c=1&amp;d=2|the *log*>",
		"- one\n  - two":   "- one\n    - two",
		"```\n  code\n```": "```\n  code\n```",
	} {
		if got := googleChatText(md); got != want {
			t.Errorf("%q becomes %q, want %q", md, got, want)
		}
	}
}
