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
		{"漢:smile:字", "漢😄字"},
		{strings.Repeat(":", 100), strings.Repeat(":", 100)},
	} {
		if got := ReplaceEmojis(test.in); got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}
