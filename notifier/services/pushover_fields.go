package services

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// fields returns the parameters of a message. further is set for the messages
// after the first, which have only a picture.
func (p *pushover) fields(m *notifier.Message, group string, further bool, f *notifier.Attachment) (fields []notifier.FormPart, err error) {
	add := func(name, value string) { fields = append(fields, notifier.FormPart{Name: name, Value: value}) }
	text := func(name, value string) {
		if p.key != "" && p.e2ee && value != "" && err == nil {
			value, err = pushoverEncrypt(p.key, value)
		}
		add(name, value)
	}
	title, body, sound, priority := m.Title, m.Body, p.sound, p.priority
	if title == "" {
		title = m.Identity.Description
	}
	html := m.Format == notifier.HTML
	if m.Format == notifier.Markdown {
		// Pushover supports HTML but not Markdown. If the HTML is too long, the
		// Markdown is sent as text.
		text := markup.Convert(body, notifier.Markdown, notifier.HTML)
		if html = utf8.RuneCountInString(text) <= pushoverText; html {
			body = text
		}
	}
	if further {
		title, sound = "", "none"
		if priority == pushoverEmergency {
			// The first message sounds the alarm, to be acknowledged once.
			priority = 0
		}
	}
	if body == "" && f != nil {
		body = f.Name
	}
	add("token", p.token)
	add("priority", strconv.Itoa(priority))
	text("title", title)
	text("message", body)
	add("sound", sound)
	if p.link != "" {
		text("url", p.link)
	}
	if p.linkTitle != "" {
		text("url_title", p.linkTitle)
	}
	if html {
		add("html", "1")
	}
	if priority == pushoverEmergency {
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

// pushoverPictures returns the files, with nil in the place of each that Pushover
// does not accept.
func pushoverPictures(c *notifier.Client, files []*notifier.Attachment) []*notifier.Attachment {
	pictures := slices.Clone(files)
	for i, f := range files {
		switch {
		case f.MediaType() != "image":
			c.Warn("Pushover accepts only pictures; file %d is left out", i+1)
		case f.Size > pushoverImage:
			c.Warn("Pushover accepts only pictures of up to 5 MiB; file %d is left out", i+1)
		default:
			continue
		}
		pictures[i] = nil
	}
	return pictures
}
