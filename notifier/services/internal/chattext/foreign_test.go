package chattext

import (
	"strings"
	"testing"
)

func TestBreak(t *testing.T) {
	for _, tt := range []struct {
		name  string
		f     func(string) string
		texts map[string]string // ~ stands for the separator
	}{
		{"mentions", BreakMentions, map[string]string{
			"":                      "",
			"91% full":              "91% full",
			"@all, (@bob) @@x ＠eve": "@~all, (@~bob) @@~x ＠~eve",
			"x\n@all":               "x\n@~all",
			"joe@example.com a@b":   "joe@example.com a@b",
			"https://a.b/@x/@y?z=@1 c@d https://u@e.f/": "https://a.b/%40x/%40y?z=%401 c@d https://u@e.f/",
			"_@all .@here <@U1> @**all**":               "_@~all .@~here <@~U1> @~**all**",
		}},
		{"markup", BreakMarkup, map[string]string{
			"a < b, x<5, <= >=":           "a < b, x<5, <= >=",
			"[a](b) [a] (b) f(x)[0](1)":   "[a]~(b) [a] (b) f(x)[0]~(1)",
			"<!channel> <@U1> <#C1> <at>": "<~!channel> <~@U1> <~#C1> <~at>",
			"<https://a.b|c> </at> <&1>":  "<~https://a.b|c> <~/at> <~&1>",
		}},
		{"all", BreakAll, map[string]string{"<@all> [@x](y)": "<~@~all> [@~x]~(y)"}},
	} {
		for in, want := range tt.texts {
			if got := strings.ReplaceAll(tt.f(in), Separator, "~"); got != want {
				t.Errorf("%s: %q becomes %q, want %q", tt.name, in, got, want)
			}
		}
	}
}
