package events

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Text is the default message about an event.
type Text struct {
	Title, Body string
	Type        notifier.Type
}

// data are the data of an event.
type data map[string]any

// text returns a value as text, or "" if there is none.
func (d data) text(key string) string { return formatValue(d[key]) }

// name returns a value that names the event's subject.
func (d data) name(key string) string { return cmp.Or(d.text(key), "an unknown name") }

func (d data) isTrue(key string) bool { return d[key] == true }

// line returns `label: value`, or "" if there is no value.
func (d data) line(label, key string) string {
	v := d.text(key)
	if v == "" {
		return ""
	}
	return label + ": " + v
}

// texts has the texts for the events of Caddy, CertMagic, the plugin
// caddy-ratelimit and the gateway itself. reload reports whether the event
// occurs during a reload.
var texts = map[string]func(d data, reload bool) Text{
	"started": func(_ data, reload bool) Text {
		if reload {
			return Text{"Caddy has a new configuration", "Caddy" + onHost() + " has loaded a new configuration.", notifier.Info}
		}
		return Text{"Caddy has started", "Caddy" + onHost() + " has started.", notifier.Info}
	},
	event.ConfigChanged: func(d data, _ bool) Text {
		return Text{
			"Saved configuration " + d.name("change") + ": " + d.name("key"),
			markup.JoinLines(d.line("Destinations", "destinations"), d.line("User", "user")), notifier.Info,
		}
	},
	event.Answered: func(d data, _ bool) Text {
		return Text{
			"Question " + d.name("state") + d.keySuffix(),
			markup.JoinLines(d.line("By", "by"), d.line("Through", "through")), notifier.Info,
		}
	},
	event.Silence: func(d data, _ bool) Text {
		return Text{
			"Silence " + d.name("change") + ": " + d.name("key"),
			markup.JoinLines(d.line("From", "from"), d.line("Until", "until"), d.line("Tag", "tag"),
				d.line("Reason", "reason"), d.line("By", "who"), d.line("Messages", "messages")), notifier.Info,
		}
	},
	event.Device: func(d data, _ bool) Text {
		typ := notifier.Info
		if change := d["change"]; change == "gone" || change == "silent" || change == "refused" {
			typ = notifier.Warning
		}
		return Text{"Device " + d.name("change") + d.keySuffix(), markup.JoinLines(d.line("Device", "device"), d.line("By", "by")), typ}
	},
	"stopping": func(data, bool) Text {
		return Text{"Caddy is stopping", "Caddy" + onHost() + " is stopping.", notifier.Warning}
	},
	"cert_obtaining": func(d data, _ bool) Text {
		if d.isTrue("renewal") {
			return Text{
				"Renewing the certificate of " + d.name("identifier"),
				markup.JoinLines(d.remaining(), d.line("Issuer", "issuer")), notifier.Info,
			}
		}
		return Text{"Obtaining a certificate for " + d.name("identifier"), d.line("Issuer", "issuer"), notifier.Info}
	},
	"cert_obtained": func(d data, _ bool) Text {
		if d.isTrue("renewal") {
			return Text{"Certificate of " + d.name("identifier") + " renewed", d.line("Issuer", "issuer"), notifier.Success}
		}
		return Text{"Certificate for " + d.name("identifier") + " obtained", d.line("Issuer", "issuer"), notifier.Success}
	},
	"cert_failed": func(d data, _ bool) Text {
		body := markup.JoinLines(d.text("error"), d.line("Issuers", "issuers"))
		if d.isTrue("renewal") {
			return Text{"Certificate of " + d.name("identifier") + " not renewed", markup.JoinLines(body, d.remaining()), notifier.Failure}
		}
		return Text{"No certificate for " + d.name("identifier"), body, notifier.Failure}
	},
	"cert_ocsp_revoked": func(d data, _ bool) Text {
		return Text{
			"Certificate of " + d.name("subjects") + " revoked",
			markup.JoinLines(d.line("Reason", "reason"), d.line("Revoked", "revoked_at")), notifier.Failure,
		}
	},
	"cached_managed_cert":   certificateLoaded,
	"cached_unmanaged_cert": certificateLoaded,
	"healthy": func(d data, _ bool) Text {
		return Text{"Upstream " + d.name("host") + " is up", "The upstream " + d.name("host") + " passes its health checks.", notifier.Success}
	},
	"unhealthy": func(d data, _ bool) Text {
		return Text{
			"Upstream " + d.name("host") + " is down",
			"The upstream " + d.name("host") + " fails its health checks and gets no requests.", notifier.Failure,
		}
	},
	"rate_limit_exceeded": func(d data, _ bool) Text {
		// Without the time to wait, each refused request has the same text, and dedupe tells
		// them once.
		return Text{"Rate limit exceeded by " + d.name("remote_ip"), d.line("Zone", "zone"), notifier.Warning}
	},
	event.Failed: func(d data, _ bool) Text {
		return Text{"Message not delivered" + d.keySuffix(), markup.JoinLines(d.deliveries(), d.text("error")), notifier.Failure}
	},
	event.Dead: func(d data, _ bool) Text {
		return Text{
			"Delivery given up" + d.keySuffix(),
			markup.JoinLines(d.line("Service", "service"), d.text("error"), d.line("ID", "id")), notifier.Failure,
		}
	},
	event.Incident: func(d data, _ bool) Text {
		typ := notifier.Info
		switch d["change"] {
		case event.IncidentResolved:
			typ = notifier.Success
		case event.IncidentExhausted:
			typ = notifier.Failure
		}
		return Text{"Incident " + d.name("change") + d.keySuffix(), markup.JoinLines(d.line("Incident", "incident"), d.line("By", "by")), typ}
	},
	event.Down: func(d data, _ bool) Text {
		return Text{
			"Destination down" + d.keySuffix(),
			markup.JoinLines(d.line("Service", "service"), d.line("Destination", "destination"),
				d.text("error"), d.line("Waiting", "waiting")), notifier.Failure,
		}
	},
	event.Up: func(d data, _ bool) Text {
		return Text{
			"Destination is back" + d.keySuffix(),
			markup.JoinLines(d.line("Service", "service"), d.line("Destination", "destination"),
				d.line("It was down for", "duration"), d.line("Waiting", "waiting")), notifier.Success,
		}
	},
	event.BeatLate: func(d data, _ bool) Text {
		what := " is late"
		switch d.text("state") {
		case "failed":
			what = " has failed"
		case "too_long":
			what = " has not ended"
		}
		return Text{
			"Beat " + d.name("beat") + what + d.keySuffix(),
			markup.JoinLines(d.line("Last beat", "last"), d.line("Run time", "ran"), d.line("Exit code", "exit"),
				d.line("Expected every", "every"), d.line("Expected by cron", "cron")), notifier.Failure,
		}
	},
	event.BeatBack: func(d data, _ bool) Text {
		return Text{
			"Beat " + d.name("beat") + " is back" + d.keySuffix(),
			markup.JoinLines(d.line("Run time", "ran"), d.line("Expected every", "every"), d.line("Expected by cron", "cron")),
			notifier.Success,
		}
	},
	event.Delivered: func(d data, _ bool) Text {
		return Text{"Message delivered" + d.keySuffix(), markup.JoinLines(d.deliveries(), d.line("Services", "services")), notifier.Success}
	},
}

func certificateLoaded(d data, _ bool) Text {
	body := ""
	if d.isTrue("replacement") {
		body = "It replaces another certificate."
	}
	return Text{"Certificate for " + d.name("sans") + " loaded", body, notifier.Info}
}

// remaining returns a sentence on how long the current certificate is valid.
func (d data) remaining() string {
	left, ok := d["remaining"].(time.Duration)
	switch {
	case !ok:
		return ""
	case left <= 0:
		return "The current certificate has expired."
	}
	return "The current certificate is valid for another " + formatValue(left) + "."
}

// keySuffix returns the key of a message for the end of a title.
func (d data) keySuffix() string {
	if d.text("key") == "" {
		return ""
	}
	return " (key " + d.text("key") + ")"
}

// deliveries returns a sentence on how many destinations have a message.
func (d data) deliveries() string {
	delivered, _ := d["delivered"].(int)
	failed, _ := d["failed"].(int)
	return fmt.Sprintf("%d of %d destinations have the message.", delivered, delivered+failed)
}

func onHost() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return " on " + name
}

// describe returns the default message about an event. reload reports whether it
// occurs during a reload.
func describe(e caddy.Event, reload bool) Text {
	if describe := texts[e.Name()]; describe != nil {
		t := describe(e.Data, reload)
		t.Body = cmp.Or(t.Body, t.Title+".")
		return t
	}
	t := Text{"Event " + e.Name(), dataLines(e.Data), notifier.Info}
	if e.Origin() != nil {
		t.Body = markup.JoinLines("Module: "+string(e.Origin().CaddyModule().ID), t.Body)
	}
	t.Body = cmp.Or(t.Body, "The event has no data.")
	return t
}

// Limits of the data of an unknown event.
const (
	maxDataLines = 20
	maxDataValue = 300 // bytes
)

// dataLines returns the data of an unknown event, one value a line. It leaves
// out structures, which may contain a private key.
func dataLines(d data) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if !isScalar(d[name]) {
			continue
		}
		if len(out) == maxDataLines {
			out = append(out, "…")
			break
		}
		out = append(out, markup.TruncateBytes(name, maxDataValue)+": "+markup.TruncateBytes(markup.FirstLine(d.text(name)), maxDataValue))
	}
	return strings.Join(out, "\n")
}

// isScalar reports whether v is a text, a number or the like.
func isScalar(v any) bool {
	switch v.(type) {
	case fmt.Stringer, error, []string:
		return true
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// formatValue returns a value as text for people, or "" for nil. It recovers
// from a panic in the value's own methods, because fmt does.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case []string:
		return strings.Join(v, ", ")
	case time.Time:
		return v.Format("2006-01-02 15:04:05 MST")
	case time.Duration:
		switch {
		case v >= 48*time.Hour:
			return fmt.Sprintf("%d days", v/(24*time.Hour))
		case v >= 2*time.Hour:
			return fmt.Sprintf("%d hours", v/time.Hour)
		case v >= 2*time.Minute:
			return fmt.Sprintf("%d minutes", v/time.Minute)
		}
		return v.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%+v", v)
}
