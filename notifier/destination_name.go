package notifier

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Name returns what people call the destination: its service and what tells it from others
// of the service, for example "Slack #ops" or "JSON web.example". See [NameOf].
func (d *Destination) Name() string {
	p := d.printed.Load()
	if p == nil || p.name == "" {
		name := NameOf(d.Service(), d.String())
		p = d.printed.Load().with(func(p *printed) { p.name = name })
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
	detail := detailOf(shown)
	if detail == "" {
		return service
	}
	return strings.TrimSpace(service + " " + detail)
}

// The parameters that tell destinations of a service apart, the best first. Of services with
// a server, the user is only a login.
var (
	tellingLists = []string{"topic", "targets", "to", "events", "channels"}
	tellingTexts = []string{"device", "organization", "routing_key", "host", "user", "device_id", "from_phone", "botname"}
)

// detailOf returns what tells the destination with a masked URL from others of its service,
// or "" if the URL does not show it.
func detailOf(shown string) string {
	if !strings.ContainsAny(shown, ": ") {
		return shownText(shown) // the key of a message whose destinations are not known yet
	}
	u, err := splitURL(shown)
	if err != nil {
		return ""
	}
	e := registry.byScheme[u.scheme]
	if e == nil {
		return shownText(authorityOf(u.authority)) // no URL of a user, such as that of a device
	}
	if r, ok := e.service.(Rewriter); ok {
		if u, err = splitURL(r.Rewrite(shown)); err != nil {
			return ""
		}
	}
	values := e.schema.shownValues(u)
	for _, name := range tellingLists {
		if detail := firstOf(values(name)); detail != "" {
			return detail
		}
	}
	for _, name := range tellingTexts {
		detail := firstOf(values(name))
		switch {
		case detail == "":
			continue
		case name == "host" && e.schema.mailbox():
			return mailAddress(firstOf(values("user")), detail)
		case name == "host":
			if port := firstOf(values("port")); port != "" {
				return detail + ":" + port
			}
		}
		return detail
	}
	return ""
}

// mailAddress returns the mail address in the user and the host of a URL. Either may be one
// by itself.
func mailAddress(user, host string) string {
	switch {
	case user == "" || strings.Contains(host, "@"):
		return host
	case strings.Contains(user, "@"):
		return user
	}
	return user + "@" + host
}

// mailbox reports whether the user and the host of a URL are a mail address.
func (d *description) mailbox() bool { return slices.Contains(d.groups, GroupMail) }

// shownValues returns a function that returns the values of a parameter in a masked URL.
func (d *description) shownValues(u *rawURL) func(name string) []string {
	given := d.given(u)
	var m *match
	for _, extra := range []bool{false, true} {
		for _, t := range d.templates {
			if _, ok := t.scheme(u.scheme); !ok || m != nil {
				continue
			}
			m, _ = t.match(u, given, extra)
		}
	}
	return func(name string) (all []string) {
		p := d.byName[name]
		if p == nil || p.name != name || p.secret || p.kind != KindString && p.kind != KindList && name != "port" {
			return nil
		}
		if m != nil {
			all = slices.Clone(m.values.of(name))
		}
		for _, q := range u.query {
			if d.byName[strings.ToLower(q.key)] == p && q.value != "" {
				if p.kind != KindList {
					all = nil
				}
				all = append(all, q.value)
			}
		}
		if p.kind != KindList {
			return all
		}
		var items []string
		for _, text := range all {
			items = append(items, p.list.split(text)...)
		}
		return items
	}
}

// maxDetail is the maximum length of a part of a name, in characters.
const maxDetail = 48

// firstOf returns the first of the values that shows something, and how many there are
// besides.
func firstOf(values []string) string {
	values = slices.DeleteFunc(values, func(v string) bool { return shownText(v) == "" })
	if len(values) == 0 {
		return ""
	}
	first := shownText(values[0])
	if len(values) > 1 {
		first += " +" + strconv.Itoa(len(values)-1)
	}
	return first
}

// shownText returns a value as a part of a name, or "" if it has a masked secret.
func shownText(value string) string {
	if strings.Contains(value, redact.Mask) {
		return ""
	}
	value = strings.TrimSpace(markup.Printable(value))
	if r := []rune(value); len(r) > maxDetail {
		value = string(r[:maxDetail-1]) + "…"
	}
	return value
}

// authorityOf returns what stands in place of the host, without its escapes.
func authorityOf(authority string) string {
	text, err := url.PathUnescape(authority)
	if err != nil {
		return authority
	}
	return text
}
