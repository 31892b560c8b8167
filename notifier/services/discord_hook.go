package services

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// discordHook is a webhook of Discord or of a service that speaks as Discord
// does.
type discordHook struct {
	id, token  string
	botname    string
	tts        bool
	avatar     bool
	avatarURL  string
	href       string
	link       string
	thread     string
	footer     bool
	footerLogo bool
	fields     bool
	flags      int
	image      bool
	ping       []string
	batch      bool
}

// describe binds all parameters but those of an address.
func (d *discordHook) describe(s *notifier.Schema) {
	s.Attachments = true
	s.Limits = markup.Limits{Title: 250, Body: 2000, InBody: true}
	s.String(&d.botname, "botname", "", "name to post under").Alias("name")
	s.Secret(&d.id, "webhook_id", "first part of the webhook's address").Example("1098765432109876543")
	s.Secret(&d.token, "webhook_token", "second part of the webhook's address").Example("AbCdEf-0123456789_GhIjKlMnOpQrStUvWxYz")
	s.Bool(&d.tts, "tts", false, "have the message read aloud")
	s.Bool(&d.avatar, "avatar", true, "show the icon of the message's type as sender")
	s.String(&d.avatarURL, "avatar_url", "", "picture of the sender, in place of that icon")
	s.String(&d.href, "href", "", "where the title leads; for format markdown")
	s.String(&d.link, "url", "", "like href, and the format becomes markdown")
	s.String(&d.thread, "thread", "", "thread to post to; the format becomes markdown").Alias("thread_id")
	s.Bool(&d.footer, "footer", false, "add a footer; for format markdown")
	s.Bool(&d.footerLogo, "footer_logo", true, "show the sender's logo in the footer")
	s.Bool(&d.fields, "fields", true, "turn headings into fields; for format markdown")
	s.Int(&d.flags, "flags", 0, "message flags as a number").Range(0, 1<<31-1)
	s.Bool(&d.image, "image", false, "show the type's icon beside; for format markdown")
	s.List(&d.ping, "ping", "whom to ping: @here, @name, <@user id>, <@&role id>")
}

// describeBatch binds how files go out together.
func (d *discordHook) describeBatch(s *notifier.Schema) {
	s.Bool(&d.batch, "batch", true, "send up to 10 files in one message")
}

// Finish takes it that who names a link or a thread wants embeds, and leaves
// room for the mentions, which otherwise stand behind the text.
func (d *discordHook) Finish(s *notifier.Schema) error {
	if d.link != "" || d.thread != "" {
		s.Format = notifier.Markdown
		return nil
	}
	s.Limits.Reserve = utf8.RuneCountInString(discordPing(map[string]any{}, strings.Join(d.ping, " ")))
	return nil
}

// send posts the text and then the files to the webhook's address.
func (d *discordHook) send(ctx context.Context, c *notifier.Client, m *notifier.Message, address string) error {
	for i, payload := range d.texts(m) {
		if err := d.post(ctx, c, fmt.Sprint("text ", i), address, notifier.JSON(payload)); err != nil {
			return err
		}
	}
	for i, files := range d.batches(m.Attachments) {
		if err := d.post(ctx, c, fmt.Sprint("files ", i), address, discordFilesBody(d.payload(m, false), files)); err != nil {
			return err
		}
	}
	return nil
}

func (d *discordHook) post(ctx context.Context, c *notifier.Client, key, address string, body *notifier.Body) error {
	q := &notifier.Request{URL: address, Body: body}
	if d.thread != "" {
		q.Query = notifier.Fields("thread_id", d.thread)
	}
	return c.Steps.Once(key, func() error {
		_, err := c.Do(ctx, q)
		return err
	})
}

// payload is what every message has.
func (d *discordHook) payload(m *notifier.Message, tts bool) map[string]any {
	p := map[string]any{"tts": tts, "wait": !tts}
	if d.flags != 0 {
		p["flags"] = d.flags
	}
	icon := m.Icon(256)
	if d.avatarURL != "" {
		icon = d.avatarURL
	}
	if d.avatar && icon != "" {
		p["avatar_url"] = icon
	}
	if d.botname != "" {
		p["username"] = d.botname
	}
	return p
}
