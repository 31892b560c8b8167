package console

import "testing"

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
