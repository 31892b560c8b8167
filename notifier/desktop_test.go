package notifier

import (
	"strings"
	"testing"
)

func TestDesktop(t *testing.T) {
	for scheme, name := range desktop {
		for _, u := range []string{scheme + "://", scheme + "://_/?image=no", strings.ToUpper(scheme) + "://device"} {
			_, err := Parse(u, nil)
			if err == nil {
				t.Errorf("%s is accepted", u)
				continue
			}
			for _, want := range []string{scheme + "://", name, "does not work on a server"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q does not contain %q", u, err, want)
				}
			}
		}
	}
	if _, err := Parse("windoze://", nil); err == nil || strings.Contains(err.Error(), "desktop") {
		t.Errorf("an unknown scheme: %v", err)
	}
}
