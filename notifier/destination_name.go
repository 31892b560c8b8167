package notifier

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Name returns what people call the destination: its service and what tells it from others
// of the service, for example "Slack #ops" or "JSON web.example". See [NameOf].
func (d *Destination) Name() string {
	shown, p := d.String(), d.printed.Load()
	if p.name == "" {
		p = p.with(func(p *printed) { p.name = NameOf(d.Service(), shown) })
		d.printed.Store(p)
	}
	return p.name
}

// Name returns the name of the target with its tags, for example
// "JSON web.example (1:oncall)".
func (t Target) Name() string { return NameWithTags(t.Destination.Name(), t.Tags) }

// NameWithTags returns the name of a destination with the tags by which messages reach it.
func NameWithTags(name string, tags []string) string {
	if len(tags) == 0 {
		return name
	}
	return name + " (" + strings.Join(tags, ", ") + ")"
}

// NameOf returns the name of a destination of a service. shown is its URL with the secrets
// masked, as [Destination.String] returns it. The name is made of nothing else, so that it
// cannot contain a secret.
func NameOf(service, shown string) string {
	if !strings.ContainsAny(shown, ": ") { // the key of a message whose destinations are not known yet
		return strings.TrimSpace(service + " " + inName(shown))
	}
	detail := ""
	if u, err := splitURL(shown); err == nil {
		detail = telling(u)
	}
	return strings.TrimSpace(service + " " + detail)
}

// tellingParams are the parameters that tell destinations of a service apart, the best first. Of
// services with a server, the user is only a login.
var tellingParams = []string{
	"topic", "targets", "to", "events", "channels", "device", "organization", "routing_key", "host", "user",
	"device_id", "from_phone", "botname",
}

// telling returns what tells the destination with a masked URL from others of its service, or
// "" if the URL does not show it.
func telling(u *urlsyntax.URL) string {
	e := registry.byScheme[u.Scheme]
	if e == nil { // no URL of a user, such as a device's URL
		return inName(percent.DecodeText(u.Authority))
	}
	m := e.schema.matchAny(u)
	for _, name := range tellingParams {
		detail := e.schema.firstShown(m, u, name)
		if detail == "" {
			continue
		}
		user, port := e.schema.firstShown(m, u, "user"), e.schema.firstShown(m, u, "port")
		switch mail := slices.Contains(e.schema.groups, GroupMail); {
		case name == "host" && mail && user != "" && !strings.Contains(detail+user, "@"):
			return user + "@" + detail
		case name == "host" && mail && strings.Contains(user, "@") && !strings.Contains(detail, "@"):
			return user
		case name == "host" && !mail && port != "":
			return detail + ":" + port
		}
		return detail
	}
	return ""
}

// matchAny returns what the first template finds in a masked URL that fits it.
func (d *description) matchAny(u *urlsyntax.URL) *urlsyntax.Match {
	for _, extra := range []bool{false, true} {
		for _, t := range d.templates {
			if _, ok := t.Scheme(u.Scheme); ok {
				if m, _ := t.Match(u, d.given(u), extra); m != nil {
					return m
				}
			}
		}
	}
	return &urlsyntax.Match{}
}

// firstShown returns the first value of a parameter that a masked URL shows, and how many
// there are besides.
func (d *description) firstShown(m *urlsyntax.Match, u *urlsyntax.URL, name string) string {
	p := d.byName[name]
	if p == nil || p.name != name || p.secret || p.kind != KindString && p.kind != KindList && name != "port" {
		return ""
	}
	all := slices.Clone(m.Values.Of(name))
	for _, q := range u.Query {
		if d.byName[strings.ToLower(q.Key)] == p && q.Value != "" {
			all = append(all, q.Value)
		}
	}
	var items []string
	for _, text := range all {
		if p.kind != KindList {
			items = []string{text} // the query's value counts
			continue
		}
		items = append(items, p.list.split(text)...)
	}
	items = slices.DeleteFunc(items, func(item string) bool { return inName(item) == "" })
	if len(items) > 1 {
		return inName(items[0]) + " +" + strconv.Itoa(len(items)-1)
	}
	return inName(strings.Join(items, "")) // the only one, or none
}

// inName returns a value as a part of a name, in a few characters, or "" if it has a masked
// secret.
func inName(value string) string {
	if strings.Contains(value, redact.Mask) {
		return ""
	}
	return markup.Truncate(strings.TrimSpace(markup.Printable(value)), 47)
}
