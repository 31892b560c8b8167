package events

import (
	"strings"
	"testing"
)

// TestDataOfSeveralEvents checks that one of several events must have the data,
// and that an unknown event may have any.
func TestDataOfSeveralEvents(t *testing.T) {
	for _, tt := range []struct {
		events []string
		name   string
		ok     bool
	}{
		{[]string{"cert_failed", "healthy"}, "host", true},
		{[]string{"cert_failed", "healthy"}, "hots", false},
		{[]string{"cert_failed", "x"}, "hots", true},
		{nil, "hots", true},
	} {
		if err := checkData("{event.data."+tt.name+"}", tt.events); (err == nil) != tt.ok {
			t.Errorf("%s of %q: %v", tt.name, tt.events, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"cert_faild":    "Caddy has no event cert_faild; did you mean cert_failed?",
		"Unhealthy":     "Caddy has no event Unhealthy; did you mean unhealthy",
		"notify_failed": "", "rate_limit_exceeded": "", "started": "", "": "",
		"backup_done": "Caddy has no event backup_done; correct the name (a plugin may emit it",
	} {
		err := checkName(name)
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
