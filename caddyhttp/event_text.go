package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// eventText is what an event says where the operator has not written it.
type eventText struct {
	title, body string
	kind        notifier.Type
}

// eventData are the data of an event.
type eventData map[string]any

// text is a value for people to read; "" where there is none.
func (d eventData) text(name string) string { return plain(d[name]) }

// name is what an event is about.
func (d eventData) name(key string) string { return cmp.Or(d.text(key), "an unknown name") }

func (d eventData) is(name string) bool { return d[name] == true }

// line is `label: value`, or nothing where there is no value.
func (d eventData) line(label, name string) string {
	v := d.text(name)
	if v == "" {
		return ""
	}
	return label + ": " + v
}

// eventTexts has a text for each event that Caddy, CertMagic, the plugin
// caddy-ratelimit and the gateway itself emit.
var eventTexts = map[string]func(d eventData, reload bool) eventText{
	"started": func(_ eventData, reload bool) eventText {
		if reload {
			return eventText{"Caddy has a new configuration", "Caddy" + onHost() + " has loaded a new configuration.", notifier.Info}
		}
		return eventText{"Caddy has started", "Caddy" + onHost() + " has started.", notifier.Info}
	},
	"stopping": func(eventData, bool) eventText {
		return eventText{"Caddy is stopping", "Caddy" + onHost() + " is stopping.", notifier.Warning}
	},
	"cert_obtaining": func(d eventData, _ bool) eventText {
		if d.is("renewal") {
			return eventText{"Renewing the certificate of " + d.name("identifier"), joinLines(d.remaining(), d.line("Issuer", "issuer")), notifier.Info}
		}
		return eventText{"Obtaining a certificate for " + d.name("identifier"), d.line("Issuer", "issuer"), notifier.Info}
	},
	"cert_obtained": func(d eventData, _ bool) eventText {
		if d.is("renewal") {
			return eventText{"Certificate of " + d.name("identifier") + " renewed", d.line("Issuer", "issuer"), notifier.Success}
		}
		return eventText{"Certificate for " + d.name("identifier") + " obtained", d.line("Issuer", "issuer"), notifier.Success}
	},
	"cert_failed": func(d eventData, _ bool) eventText {
		body := joinLines(d.text("error"), d.line("Issuers", "issuers"))
		if d.is("renewal") {
			return eventText{"Certificate of " + d.name("identifier") + " not renewed", joinLines(body, d.remaining()), notifier.Failure}
		}
		return eventText{"No certificate for " + d.name("identifier"), body, notifier.Failure}
	},
	"cert_ocsp_revoked": func(d eventData, _ bool) eventText {
		return eventText{
			"Certificate of " + d.name("subjects") + " revoked",
			joinLines(d.line("Reason", "reason"), d.line("Revoked", "revoked_at")), notifier.Failure,
		}
	},
	"cached_managed_cert":   certificateLoaded,
	"cached_unmanaged_cert": certificateLoaded,
	"healthy": func(d eventData, _ bool) eventText {
		return eventText{"Upstream " + d.name("host") + " is up", "The upstream " + d.name("host") + " passes its health checks.", notifier.Success}
	},
	"unhealthy": func(d eventData, _ bool) eventText {
		return eventText{"Upstream " + d.name("host") + " is down", "The upstream " + d.name("host") + " fails its health checks and gets no requests.", notifier.Failure}
	},
	"rate_limit_exceeded": func(d eventData, _ bool) eventText {
		return eventText{
			"Rate limit exceeded by " + d.name("remote_ip"),
			joinLines(d.line("Zone", "zone"), d.line("Next request possible in", "wait")), notifier.Warning,
		}
	},
	eventFailed: func(d eventData, _ bool) eventText {
		return eventText{"Message not delivered" + ofKey(d), joinLines(howMany(d), d.text("error")), notifier.Failure}
	},
	eventDelivered: func(d eventData, _ bool) eventText {
		return eventText{"Message delivered" + ofKey(d), joinLines(howMany(d), d.line("Services", "services")), notifier.Success}
	},
}

func certificateLoaded(d eventData, _ bool) eventText {
	how := ""
	if d.is("replacement") {
		how = "It replaces another."
	}
	return eventText{"Certificate for " + d.name("sans") + " loaded", how, notifier.Info}
}

// remaining says for how long the present certificate is good.
func (d eventData) remaining() string {
	left, ok := d["remaining"].(time.Duration)
	switch {
	case !ok:
		return ""
	case left <= 0:
		return "The present certificate has expired."
	}
	return "The present certificate is valid for another " + plain(left) + "."
}

func ofKey(d eventData) string {
	if d.text("key") == "" {
		return ""
	}
	return " (key " + d.text("key") + ")"
}

func howMany(d eventData) string {
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

// describeEvent puts an event into words. reload says whether a configuration
// that starts or stops replaces another or is replaced.
func describeEvent(e caddy.Event, reload bool) eventText {
	if words := eventTexts[e.Name()]; words != nil {
		t := words(e.Data, reload)
		t.body = cmp.Or(t.body, t.title+".")
		return t
	}
	t := eventText{"Event " + e.Name(), dataLines(e.Data), notifier.Info}
	if e.Origin() != nil {
		t.body = joinLines("Module: "+string(e.Origin().CaddyModule().ID), t.body)
	}
	t.body = cmp.Or(t.body, "The event has no data.")
	return t
}

// The bounds of the data of an unknown event.
const (
	maxDataLines = 20
	maxDataValue = 300
)

// dataLines shows the data of an event of which nothing is known. It leaves
// out what is not plain text, number or the like: a structure may well hold a
// private key.
func dataLines(d eventData) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if !isPlain(d[name]) {
			continue
		}
		if len(out) == maxDataLines {
			out = append(out, "…")
			break
		}
		out = append(out, markup.TruncateBytes(name, maxDataValue)+": "+markup.TruncateBytes(firstLine(d.text(name)), maxDataValue))
	}
	return strings.Join(out, "\n")
}

func isPlain(v any) bool {
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

// plain writes a value for people to read. It does not panic, whatever the
// value's own methods do.
func plain(v any) string {
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
