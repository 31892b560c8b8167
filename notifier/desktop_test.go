package notifier

import (
	"errors"
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

// TestRetired checks that the error for a URL of a service that has ended says so
// and suggests no service with a similar name.
func TestRetired(t *testing.T) {
	for scheme := range retired {
		u := strings.ToUpper(scheme) + "://token-secret/a"
		_, err := Parse(u, nil)
		e, ok := errors.AsType[*URLError](err)
		if !ok || !e.Retired || !strings.Contains(e.Error(), scheme+"://, which is retired: ") ||
			e.Fix == "" || strings.Contains(e.Error(), "secret") {
			t.Errorf("%s: %v", u, err)
		}
		if got := WithSuggestion(u, err); got != err {
			t.Errorf("%s: %v", u, got)
		}
		if SchemesOf(scheme) != nil {
			t.Errorf("a service has the scheme %s", scheme)
		}
	}
}
