package compose

import "testing"

func TestTypeOfColor(t *testing.T) {
	for color, want := range map[string]string{
		"#A32037": "failure", "#e01e5a": "failure", "#F00": "failure", "#ECB22E": "warning", "FFA500": "warning", "#2EB67D": "success",
		"#3AA337": "success",
		"#3AA3E3": "", "#764FA5": "", "#cccccc": "", "#000000": "", "nonsense": "", "": "", "#1234567": "",
	} {
		if got := TypeOfColor(ParseColor(color)); string(got) != want {
			t.Errorf("%s: %q, want %q", color, got, want)
		}
	}
}
