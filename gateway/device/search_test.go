package device

import "testing"

func TestIsMeant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"phone": true, " My  Phone ": true, "iPhones": true, "Web-Push": true, "bro": true,
		"": false, "ph": false, "teams": false, "phone call": false, "+4915112345678": false, "pushover": false,
	} {
		if IsMeant(text) != want {
			t.Errorf("%q is meant: %t", text, !want)
		}
	}
}
