package notifier

import "testing"

func TestPhone(t *testing.T) {
	for in, want := range map[string]string{
		"+1 (555) 123-4567": "+15551234567", "555.123.4567": "5551234567",
		"12": "", "1234567890123456": "", "555-CALL": "", "": "", "5+5512345": "",
	} {
		if got, err := Phone(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}
