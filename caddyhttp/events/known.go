// Package events sends events of Caddy, CertMagic and the gateway as messages. It knows
// their names, their data, and the default message about each.
package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/internal/similar"
)

// known are the events of Caddy 2.11, of CertMagic 0.25 and of the gateway, each with
// the names of all its data. Some data are not in every event of the name: remaining,
// for example, is there on a renewal only. The certificate of cert_ocsp_revoked is
// left out, because its text contains the private key.
var known = map[string][]string{
	"started":        {},
	"stopping":       {},
	"cert_obtaining": {"forced", "identifier", "issuer", "remaining", "renewal"},
	"cert_obtained": {
		"certificate_path", "csr_pem", "identifier", "issuer", "metadata_path",
		"private_key_path", "remaining", "renewal", "storage_path",
	},
	"cert_failed":           {"error", "identifier", "issuers", "remaining", "renewal"},
	"cert_ocsp_revoked":     {"reason", "revoked_at", "subjects"},
	"cached_managed_cert":   {"replacement", "sans"},
	"cached_unmanaged_cert": {"replacement", "sans"},
	"tls_get_certificate":   {"client_hello"},
	"healthy":               {"host"},
	"unhealthy":             {"host"},
	event.Delivered:         {"delivered", "destinations", "failed", "incident", "key", "services", "source"},
	event.Dead:              {"attempts", "destination", "error", "id", "incident", "key", "service", "source"},
	event.Down:              {"destination", "error", "key", "service", "since", "waiting"},
	event.Up:                {"destination", "duration", "error", "key", "service", "since", "waiting"},
	event.BeatLate:          {"beat", "cron", "every", "exit", "key", "last", "ran", "state"},
	event.BeatBack:          {"beat", "cron", "every", "exit", "key", "last", "ran", "state"},
	event.Incident:          {"by", "change", "incident", "key", "round", "source", "step", "type"},
	event.Device:            {"by", "change", "device", "key"},
	event.ConfigChanged:     {"change", "destinations", "key", "space", "user"},
	event.Answered:          {"by", "id", "key", "state", "through"},
	event.Silence:           {"change", "from", "key", "messages", "reason", "silence", "tag", "until", "who"},
	event.Failed:            {"delivered", "destinations", "error", "errors", "failed", "incident", "key", "services", "source"},
}

// checkName returns an error if no module is known to emit an event of the
// name. The empty name stands for all events. The error is only for a warning,
// because a plugin may emit the event.
func checkName(name string) error {
	if _, ok := known[name]; ok || name == "" || texts[name] != nil {
		return nil
	}
	hint := "correct the name"
	if similar := similar.Names(strings.ToLower(name), slices.Sorted(maps.Keys(known))); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return fmt.Errorf("Caddy has no event %s; %s (a plugin may emit it; if none does, nothing is sent)", name, hint)
}

// checkData returns an error if text has a placeholder {event.data.*} for
// data that none of the events has. It would be sent as it is. The data of
// other events than the known ones are not checked.
func checkData(text string, events []string) error {
	var names []string
	for _, event := range events {
		data, ok := known[event]
		if !ok {
			return nil
		}
		names = append(names, data...)
	}
	if len(events) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return placeholder.Each(text, func(p string) error {
		name, ok := strings.CutPrefix(p, "event.data.")
		if !ok || !placeholder.IsName(p) || slices.Contains(names, name) {
			return nil
		}
		hint := "remove the placeholder, because the event has no data"
		if similar := similar.Names(strings.ToLower(name), names); len(similar) > 0 {
			hint = "did you mean " + dataPlaceholders(similar, " or ") + "?"
		} else if len(names) > 0 {
			hint = "use " + dataPlaceholders(names, ", ")
		}
		return fmt.Errorf(`the placeholder {%s} has no value in a message about the event %s; %s (write \{ for a literal brace)`,
			p, strings.Join(events, ", "), hint)
	})
}

// dataPlaceholders returns the placeholders for data of an event.
func dataPlaceholders(names []string, separator string) string {
	return "{event.data." + strings.Join(names, "}"+separator+"{event.data.") + "}"
}
