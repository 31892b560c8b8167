package services

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[discord]()

// discord posts to a channel of Discord through a webhook.
type discord struct {
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

// What one message may hold besides its text.
const (
	discordFields    = 10
	discordFiles     = 10
	discordFileBytes = 25 << 20
)

func (d *discord) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Discord", "https://discord.com/developers/docs/resources/webhook#execute-webhook"
	s.URL("discord://[{botname}@]{webhook_id}/{webhook_token}")
	s.Native(
		"https://discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://discordapp.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://ptb.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
		"https://canary.discord.com/api/webhooks/{webhook_id}/{webhook_token}",
	)
	s.Attachments = true
	s.Limits = notifier.Limits{Title: 250, Body: 2000, InBody: true}
	s.String(&d.botname, "botname", "", "name to post under")
	s.Secret(&d.id, "webhook_id", "first part of the webhook's address")
	s.Secret(&d.token, "webhook_token", "second part of the webhook's address")
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
	s.Bool(&d.batch, "batch", true, "send up to 10 files in one message")
}

func (d *discord) Finish(s *notifier.Schema) error {
	if d.link != "" || d.thread != "" {
		s.Format = notifier.Markdown
	}
	return nil
}

func (d *discord) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	post := func(key string, payload map[string]any, files []*notifier.Attachment) error {
		return c.Once(key, func() error {
			q := &notifier.Request{URL: "https://discord.com/api/webhooks" + notifier.Path(d.id, d.token)}
			if d.thread != "" {
				q.Query = notifier.Fields("thread_id", d.thread)
			}
			q.Body = discordBody(payload, files)
			_, err := c.Do(ctx, q)
			return err
		})
	}
	if m.Title != "" || m.Body != "" {
		for i, payload := range d.texts(m) {
			if err := post(fmt.Sprint("text ", i), payload, nil); err != nil {
				return err
			}
		}
	}
	for i, files := range d.batches(m.Attachments) {
		if err := post(fmt.Sprint("files ", i), d.payload(m, false), files); err != nil {
			return err
		}
	}
	return nil
}

// payload is what every message has.
func (d *discord) payload(m *notifier.Message, tts bool) map[string]any {
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

// discordBody is the payload as JSON, or with files as a form that holds it.
func discordBody(payload map[string]any, files []*notifier.Attachment) *notifier.Body {
	if len(files) == 0 {
		return notifier.JSON(payload)
	}
	var fields []string
	for _, name := range []string{"tts", "wait", "flags", "avatar_url", "username"} {
		if v, ok := payload[name]; ok {
			text, _ := json.Marshal(v) // a text, a number or a truth value
			fields = append(fields, `"`+name+`": `+string(text))
		}
	}
	parts := []notifier.FormPart{{Name: "payload_json", Value: "{" + strings.Join(fields, ", ") + "}"}}
	for i, f := range files {
		parts = append(parts, notifier.FormPart{Name: fmt.Sprintf("files[%d]", i), File: f})
	}
	return notifier.Multipart(parts...)
}

// batches deals files out to messages.
func (d *discord) batches(files []*notifier.Attachment) (out [][]*notifier.Attachment) {
	size := int64(0)
	for i, f := range files {
		last := len(out) - 1
		if i == 0 || !d.batch || len(out[last]) >= discordFiles || size+f.Size > discordFileBytes {
			out, last, size = append(out, nil), last+1, 0
		}
		out[last] = append(out[last], f)
		size += f.Size
	}
	return out
}
