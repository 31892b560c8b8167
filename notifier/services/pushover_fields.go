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
func (p *pushover) fields(m *notifier.Message, group string, further bool, f *notifier.Attachment) ([]notifier.FormPart, error) {
	form := pushoverForm{}
	if p.e2ee {
		form.key = p.key
	}
	title, body, sound, priority := m.Title, m.Body, p.sound, p.priority
	if p.endsAlarm(m) {
		priority = 0
	}
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
	form.add("token", p.token)
	form.add("priority", strconv.Itoa(priority))
	form.text("title", title)
	form.text("message", body)
	form.add("sound", sound)
	switch {
	case p.link != "":
		form.text("url", p.link)
	case m.Link.URL != "" && p.linkTitle == "":
		// See https://pushover.net/api#urls.
		form.text("url", m.Link.URL)
		form.text("url_title", m.Link.Label)
	}
	if p.linkTitle != "" {
		form.text("url_title", p.linkTitle)
	}
	if html {
		form.add("html", "1")
	}
	if priority == pushoverEmergency {
		form.add("retry", strconv.Itoa(p.interval))
		form.add("expire", strconv.Itoa(p.expire))
		if m.Incident.ID != "" {
			form.add("tags", m.Incident.ID)
		}
	}
	if form.key != "" {
		form.add("encrypted", "1")
	}
	switch {
	case group != "":
		form.add("user", group)
	case len(p.devices) > 0:
		form.add("user", p.user)
		form.add("device", strings.Join(p.devices, ","))
	default:
		form.add("user", p.user)
		form.add("device", "ALL_DEVICES")
	}
	return form.fields, form.err
}

// pushoverForm collects the parameters of a message.
type pushoverForm struct {
	key    string // to encrypt texts with, or empty
	fields []notifier.FormPart
	err    error // the first of encrypting
}

func (f *pushoverForm) add(name, value string) {
	f.fields = append(f.fields, notifier.FormPart{Name: name, Value: value})
}

// text adds a text, encrypted if there is a key.
func (f *pushoverForm) text(name, value string) {
	if f.key != "" && value != "" && f.err == nil {
		value, f.err = pushoverEncrypt(f.key, value)
	}
	f.add(name, value)
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
