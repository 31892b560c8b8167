package events

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/notifier"
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

// TestKnownOwnEvents checks that the list of known data is right for the events
// of this module.
func TestKnownOwnEvents(t *testing.T) {
	for name, ok := range map[string]bool{event.Delivered: true, event.Failed: false} {
		data := dispatch.OwnEventData(dispatch.Origin{}, "", ok, []notifier.Result{})
		if got := slices.Sorted(maps.Keys(data)); !slices.Equal(got, known[name]) {
			t.Errorf("%s has the data %v, want %v", name, got, known[name])
		}
	}
}
