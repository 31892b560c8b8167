package caddyhttp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// knownEvents are the events of Caddy 2.11 and CertMagic 0.25 and of this
// module, each with the names of all its data. Some data are not in every event
// of the name: remaining, for example, is there on a renewal only. The
// certificate of cert_ocsp_revoked is left out, because its text contains the
// private key.
var knownEvents = map[string][]string{
	"started":               {},
	"stopping":              {},
	"cert_obtaining":        {"forced", "identifier", "issuer", "remaining", "renewal"},
	"cert_obtained":         {"certificate_path", "csr_pem", "identifier", "issuer", "metadata_path", "private_key_path", "remaining", "renewal", "storage_path"},
	"cert_failed":           {"error", "identifier", "issuers", "remaining", "renewal"},
	"cert_ocsp_revoked":     {"reason", "revoked_at", "subjects"},
	"cached_managed_cert":   {"replacement", "sans"},
	"cached_unmanaged_cert": {"replacement", "sans"},
	"tls_get_certificate":   {"client_hello"},
	"healthy":               {"host"},
	"unhealthy":             {"host"},
	eventDelivered:          {"delivered", "destinations", "failed", "key", "services", "source"},
	eventDead:               {"attempts", "destination", "error", "id", "key", "service", "source"},
	eventConfigChanged:      {"change", "destinations", "key", "user"},
	eventFailed:             {"delivered", "destinations", "error", "errors", "failed", "key", "services", "source"},
}

// unknownEvent returns an error if no module is known to emit an event of the
// name. The empty name stands for all events. The error is only for a warning,
// because a plugin may emit the event.
func unknownEvent(name string) error {
	if _, ok := knownEvents[name]; ok || name == "" || eventTexts[name] != nil {
		return nil
	}
	hint := "correct the name"
	if similar := notifier.Similar(strings.ToLower(name), slices.Sorted(maps.Keys(knownEvents))); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return fmt.Errorf("Caddy has no event %s; %s (a plugin may emit it; if none does, nothing is sent)", name, hint)
}

// checkEventData returns an error if text has a placeholder {event.data.*} for
// data that none of the events has. It would be sent as it is. The data of
// other events than the known ones are not checked.
func checkEventData(text string, events []string) error {
	var names []string
	for _, event := range events {
		data, ok := knownEvents[event]
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
	return eachPlaceholder(text, func(p string) error {
		name, ok := strings.CutPrefix(p, "event.data.")
		if !ok || !placeholderName.MatchString(p) || slices.Contains(names, name) {
			return nil
		}
		hint := "remove the placeholder, because the event has no data"
		if similar := notifier.Similar(strings.ToLower(name), names); len(similar) > 0 {
			hint = "did you mean " + dataPlaceholders(similar, " or ") + "?"
		} else if len(names) > 0 {
			hint = "use " + dataPlaceholders(names, ", ")
		}
		return fmt.Errorf(`the placeholder {%s} has no value in a message about the event %s; %s (write \{ for a literal brace)`, p, strings.Join(events, ", "), hint)
	})
}

// dataPlaceholders returns the placeholders for data of an event.
func dataPlaceholders(names []string, separator string) string {
	return "{event.data." + strings.Join(names, "}"+separator+"{event.data.") + "}"
}
