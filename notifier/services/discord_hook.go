package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/jsontemplate"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

// discordHook is a webhook of Discord or of a service with the same API. Those
// services embed it.
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
	template   jsontemplate.Template // of Discord and Guilded
	update     bool                  // of Discord
	buttons    bool                  // of Discord, set by Finish

	shown shown.Messages // with update
}

// describe binds the parameters of all these services, except the server.
func (d *discordHook) describe(s *notifier.Schema) {
	s.Attachments = true
	// The title of an embed is Markdown. post forbids the mentions.
	s.Foreign = &notifier.ForeignText{Markdown: true, Title: true}
	s.Recipients = 1 // the list has mentions
	s.Limits = markup.Limits{Title: 250, Body: 2000, InBody: true}
	s.String(&d.botname, "botname", "", "name to post under").Alias("name")
	s.Secret(&d.id, "webhook_id", "ID of the webhook, second to last part of its URL").Example("1098765432109876543")
	s.Secret(&d.token, "webhook_token", "token of the webhook, last part of its URL").Example("AbCdEf-0123456789_GhIjKlMnOpQrStUvWxYz")
	s.Bool(&d.tts, "tts", false, "read the message aloud")
	s.Bool(&d.avatar, "avatar", true, "show the icon of the message type as avatar")
	s.String(&d.avatarURL, "avatar_url", "", "address of another avatar")
	s.String(&d.href, "href", "", "address that the title links to; with format=markdown")
	s.String(&d.link, "url", "", "like href, and sets format=markdown")
	s.String(&d.thread, "thread", "", "ID of the thread to post to; sets format=markdown").Alias("thread_id")
	s.Bool(&d.footer, "footer", false, "add a footer; with format=markdown")
	s.Bool(&d.footerLogo, "footer_logo", true, "show the logo in the footer")
	s.Bool(&d.fields, "fields", true, "turn headings into fields; with format=markdown")
	s.Int(&d.flags, "flags", 0, "message flags as a number").Range(0, 1<<31-1)
	s.Bool(&d.image, "image", false, "show the icon of the message type; with format=markdown")
	s.List(&d.ping, "ping", "mentions to add: @here, @name, <@user id>, <@&role id>")
}

// describeBatch binds the parameter batch.
func (d *discordHook) describeBatch(s *notifier.Schema) {
	s.Bool(&d.batch, "batch", true, "send up to 10 files in one message")
}

// describeTemplate binds the template.
func (d *discordHook) describeTemplate(s *notifier.Schema) { d.template.Describe(s) }

// Finish selects Markdown, which is sent as embeds, if there is a link or a thread.
// Otherwise it reserves room for the mentions, which are appended to the text.
func (d *discordHook) Finish(s *notifier.Schema) error {
	if err := d.template.Check(checkDiscordTemplate); err != nil {
		return err
	}
	if d.update && d.template.Given() {
		return shown.ErrTemplate
	}
	if d.update {
		s.Limits.Reserve = shown.Reserve
	}
	if d.template.Given() {
		s.Acknowledge = notifier.AcknowledgeInText
	}
	d.buttons = s.Acknowledge == notifier.AcknowledgeByButton
	if d.link != "" || d.thread != "" {
		s.Format = notifier.Markdown
		return nil
	}
	s.Limits.Reserve += utf8.RuneCountInString(discordPing(map[string]any{}, d.ping...))
	return nil
}

// send posts the text and then the files to address. A retry skips the requests
// that have succeeded.
func (d *discordHook) send(ctx context.Context, c *notifier.Client, m *notifier.Message, address string) error {
	payloads := d.textPayloads(m)
	if d.template.Given() {
		payload, err := d.fromTemplate(ctx, c, m)
		if err != nil {
			return err
		}
		payloads = []map[string]any{payload}
	}
	if d.update && shown.Use(m) && len(payloads) > 0 {
		if err := d.show(ctx, c, m, address); err != nil {
			return err
		}
		payloads = payloads[1:]
	}
	for i, payload := range payloads {
		if err := d.post(ctx, c, fmt.Sprint("text ", i), address, d.query(payload), notifier.JSON(payload)); err != nil {
			return err
		}
	}
	for i, files := range d.fileBatches(m.Attachments) {
		payload := d.payload(m, false)
		if i == 0 && len(payloads) == 0 {
			d.addButton(payload, m)
		}
		if err := d.post(ctx, c, fmt.Sprint("files ", i), address, d.query(payload), discordFilesBody(payload, files)); err != nil {
			return err
		}
	}
	return nil
}

// post sends body to address, once for each key.
func (d *discordHook) post(ctx context.Context, c *notifier.Client, key, address string, query url.Values, body *notifier.Body) error {
	q := &notifier.Request{URL: address, Query: query, Body: body}
	return c.Steps.Once(key, func() error {
		_, err := c.Do(ctx, q)
		return err
	})
}

// query returns the parameters of a request with a payload.
func (d *discordHook) query(payload map[string]any) url.Values {
	query := url.Values{}
	if d.thread != "" {
		query.Set("thread_id", d.thread)
	}
	if payload["components"] != nil {
		query.Set("with_components", "true")
	}
	return query
}

// discordButtons is how many buttons a row has room for.
const discordButtons = 5

// addButton adds the buttons of m. Every webhook may send a
// button with a link if its request has the parameter with_components.
// See https://docs.discord.com/developers/resources/webhook#execute-webhook.
func (d *discordHook) addButton(payload map[string]any, m *notifier.Message) {
	if !d.buttons || m.Link.URL == "" {
		return
	}
	type object = map[string]any
	const row, button, link = 1, 2, 5
	var buttons []any
	for _, l := range m.Buttons(discordButtons) {
		buttons = append(buttons, object{"type": button, "style": link, "label": l.Label, "url": l.URL})
	}
	payload["components"] = []any{object{"type": row, "components": buttons}}
}

// fromTemplate returns the filled template, with the fields of every message.
func (d *discordHook) fromTemplate(ctx context.Context, c *notifier.Client, m *notifier.Message) (map[string]any, error) {
	content, err := d.template.Fill(ctx, c, jsontemplate.Values(m, m.Icon(256)), checkDiscordTemplate)
	if err != nil {
		return nil, err
	}
	p := d.payload(m, d.tts)
	maps.Copy(p, content)
	return p, nil
}

func checkDiscordTemplate(t map[string]any) error {
	if text, _ := t["content"].(string); text != "" && t["embeds"] == nil {
		return nil
	}
	if t["embeds"] == nil {
		return errors.New(`has neither "content" nor "embeds"`)
	}
	return jsontemplate.Objects(t, "embeds", "")
}

// payload returns the fields that every message has.
func (d *discordHook) payload(m *notifier.Message, tts bool) map[string]any {
	p := map[string]any{"tts": tts, "wait": !tts}
	if m.Foreign {
		p["allowed_mentions"] = d.allowedMentions()
	}
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
