package inline

import "testing"

// TestNames checks names in one line.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"Slack #ops"}, "Slack #ops"},
		{[]string{"Slack #ops", "JSON web.example (1:oncall)"}, "Slack #ops, JSON web.example (1:oncall)"},
		{[]string{"Discord", "Slack #ops", "Discord"}, "2 × Discord, Slack #ops"},
		{[]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "j"}, "a, b, c, d, e, f, g, h and 3 more"},
	} {
		if got := Names(c.names); got != c.want {
			t.Errorf("%q are %q; want %q", c.names, got, c.want)
		}
	}
}
