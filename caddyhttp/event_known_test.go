package caddyhttp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestEventData checks that a placeholder for data that the event never has is
// an error when the configuration loads, with a suggestion.
func TestEventData(t *testing.T) {
	const options = "{\nadmin off\npersist_config off\nnotify {\nkey k {\nurl json://h\n}\n}\nevents {\n"
	for _, tt := range []struct{ event, text, want string }{
		{"cert_failed", "{event.data.identifer}", "on cert_failed notify: title: the placeholder {event.data.identifer} has no value in a message about the event cert_failed; did you mean {event.data.identifier}?"},
		{"cert_failed", "{event.data.domain}", "use {event.data.error}, {event.data.identifier}, {event.data.issuers}, {event.data.remaining}, {event.data.renewal}"},
		{"healthy", "{event.data.Host}", "did you mean {event.data.host}?"},
		{"started", "{event.data.host}", "remove the placeholder, because the event has no data"},
		{"notify_delivered", "{event.data.error}", "the event notify_delivered; use {event.data.delivered}"},
		{"cert_failed", `{event.data.identifier} {event.name} \{event.data.x} {{event.data.x}}`, ""},
		{"cert_ocsp_revoked", "{event.data.certificate}", "has no value"}, // it would send the private key
		{"cert_obtained", "{event.data.certificate_path}", ""},
		{"plugin_event", "{event.data.anything}", ""},
		{"rate_limit_exceeded", "{event.data.anything}", ""},
		{"*", "{event.data.anything}", ""},
	} {
		for _, option := range []string{"title", "body"} {
			want := strings.Replace(tt.want, "title:", option+":", 1)
			err := caddy.Validate(adapted(t, options+"on "+tt.event+" notify k {\n"+option+" `"+tt.text+"`\n}\n}\n}\n"))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s with %s %s: error %v, want %q", tt.event, option, tt.text, err, want)
			}
		}
	}
}

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
		if err := checkEventData("{event.data."+tt.name+"}", tt.events); (err == nil) != tt.ok {
			t.Errorf("%s of %q: %v", tt.name, tt.events, err)
		}
	}
}

func TestUnknownEvent(t *testing.T) {
	for name, want := range map[string]string{
		"cert_faild":    "Caddy has no event cert_faild; did you mean cert_failed?",
		"Unhealthy":     "Caddy has no event Unhealthy; did you mean unhealthy",
		"notify_failed": "", "rate_limit_exceeded": "", "started": "", "": "",
		"backup_done": "Caddy has no event backup_done; correct the name (a plugin may emit it",
	} {
		err := unknownEvent(name)
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestKnownOwnEvents checks that the list of known data is right for the events
// of this module.
func TestKnownOwnEvents(t *testing.T) {
	for name, ok := range map[string]bool{eventDelivered: true, eventFailed: false} {
		data := ownEventData(delivery{}, ok, []notifier.Result{})
		if got := slices.Sorted(maps.Keys(data)); !slices.Equal(got, knownEvents[name]) {
			t.Errorf("%s has the data %v, want %v", name, got, knownEvents[name])
		}
	}
}
