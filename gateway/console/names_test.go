package console

import "testing"

// TestJoinNames checks names in one line.
func TestJoinNames(t *testing.T) {
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
		if got := joinNames(c.names); got != c.want {
			t.Errorf("%q are %q; want %q", c.names, got, c.want)
		}
	}
}

// TestGroupOf checks that the letter of a destination has the colour of its service.
func TestGroupOf(t *testing.T) {
	for shown, want := range map[string]string{
		"slack://xxxxx/#ops": "chat", "mailtos://a@example.com": "mail", "device://Jo's phone": "phone", "an unknown URL": "",
		"json://web.example": "server",
	} {
		if got := groupOf(shown); got != want {
			t.Errorf("%s is in the group %q; want %q", shown, got, want)
		}
	}
}
