package markup

import (
	"strings"
	"testing"
)

func TestReplaceEmojis(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"no names", "no names"},
		{":smile:", "😄"},
		{"a :smile: b :heart:", "a 😄 b ❤️"},
		{":SMILE:", "😄"},
		{":+1::-1:", "👍👎"},
		{"12:smile:30", "12😄30"},
		{"::smile::", ":😄:"},
		{":no_such_name:", ":no_such_name:"},
		{":no:smile:", ":no😄"},
		{"at 12:30:45 ", "at 12:30:45 "},
		{": smile :", ": smile :"},
		{":smile", ":smile"},
		{":large_green_circle: :robot_face: :simple_smile:", "🟢 🤖 🙂"},
		{":flag-de::flag-DEU::flag-1a:", "🇩🇪:flag-DEU::flag-1a:"},
		{":+1::skin-tone-4: :skin-tone-7:", "👍🏽 :skin-tone-7:"},
		{"漢:smile:字", "漢😄字"},
		{strings.Repeat(":", 100), strings.Repeat(":", 100)},
	} {
		if got := ReplaceEmojis(test.in); got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}

// TestSlackEmojis checks that the names of Slack in the table differ from GitHub's and
// lead to an emoji.
func TestSlackEmojis(t *testing.T) {
	for name, other := range slackEmojis {
		if e, ok := emojiNames().Get(name); ok {
			t.Errorf("%s is a name of GitHub: %s", name, string(e.Unicode))
		}
		if _, ok := emojiNames().Get(other); !ok {
			t.Errorf("%s is %s, which is no name of GitHub", name, other)
		}
	}
}
