package services

import (
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// fields are the parameters of a message.
func (p *pushover) fields(m *notifier.Message, group string, picture bool, f *notifier.Attachment) (fields []notifier.FormPart, err error) {
	add := func(name, value string) { fields = append(fields, notifier.FormPart{Name: name, Value: value}) }
	text := func(name, value string) {
		if p.key != "" && p.e2ee && value != "" && err == nil {
			value, err = pushoverSeal(p.key, value)
		}
		add(name, value)
	}
	title, body, sound := m.Title, m.Body, p.sound
	if title == "" {
		title = m.Identity.Description
	}
	if m.Format == notifier.Markdown {
		// Pushover knows no Markdown, but it knows HTML.
		body = notifier.Convert(body, notifier.Markdown, notifier.HTML)
	}
	if picture {
		title, sound = "", "none"
	}
	if body == "" && f != nil {
		body = f.Name
	}
	add("token", p.token)
	add("priority", strconv.Itoa(p.priority))
	text("title", title)
	text("message", body)
	add("sound", sound)
	if p.link != "" {
		text("url", p.link)
	}
	if p.linkTitle != "" {
		text("url_title", p.linkTitle)
	}
	if m.Format == notifier.HTML || m.Format == notifier.Markdown {
		add("html", "1")
	}
	if p.priority == pushoverEmergency {
		add("retry", strconv.Itoa(p.interval))
		add("expire", strconv.Itoa(p.expire))
	}
	if p.key != "" && p.e2ee {
		add("encrypted", "1")
	}
	switch {
	case group != "":
		add("user", group)
	case len(p.devices) > 0:
		add("user", p.user)
		add("device", strings.Join(p.devices, ","))
	default:
		add("user", p.user)
		add("device", "ALL_DEVICES")
	}
	return fields, err
}
