package services

import (
	"context"
	"errors"
	"strconv"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[webex]()

// webex posts to rooms of Cisco Webex through an incoming webhook or as a bot.
type webex struct {
	token, mode string
	rooms       []string
	bot         bool
}

func (w *webex) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Cisco Webex Teams", "https://developer.webex.com/messaging/docs/api/v1/messages/create-a-message"
	s.Setup = "Connect Incoming Webhooks from the Webex App Hub to the space and copy the last part of the " +
		"webhook's URL, or create a bot at developer.webex.com, copy its access token and add it to the space."
	s.Groups(notifier.GroupChat)
	s.Words("cisco spark", "webex messaging")
	s.URL("wxteams|webex://{token}[/{targets...}]")
	s.Native("https://api.ciscospark.com/v1/webhooks/incoming/{token}", "https://webexapis.com/v1/webhooks/incoming/{token}")
	s.Format = notifier.Markdown
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Body: 7439}
	s.Attachments = true
	// A mention is <@all> or <@personEmail:…>.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMarkup}
	s.Secret(&w.token, "token", "token of the webhook, or access token of the bot").Alias("access_token").
		Example("Y2lzY29zcGFyazovL3VzL1dFQkhPT0svNGRiODZmNDQtZTVmNy00YjQ4LWFkMWQtNDYxMzU5ZmZlMDEx")
	s.List(&w.rooms, "targets", "IDs of the rooms that a bot posts to; none for a webhook").Alias("to")
	s.Choice(&w.mode, "mode", "", []string{"webhook", "bot"}, "kind of token; default: bot if there are rooms, else by its form")
}

var webexWebhook = lazyregexp.New(`(?i)^[a-z0-9]{80,160}$`)

// Finish sets the mode and its limits.
func (w *webex) Finish(s *notifier.Schema) error {
	hook := webexWebhook.MatchString(w.token)
	w.bot = w.mode == "bot" || w.mode == "" && (len(w.rooms) > 0 || !hook)
	switch {
	case w.bot && len(w.rooms) == 0:
		return errors.New("a bot needs the ID of a room after its token; the token of a webhook has 80 to 160 letters and digits")
	case !w.bot && !hook:
		return errors.New("the token of a webhook has 80 to 160 letters and digits")
	}
	if !w.bot {
		s.Limits, s.Attachments = markup.Limits{Body: 1000}, false
	}
	return nil
}

func (w *webex) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind := "text"
	if m.Format == notifier.Markdown {
		kind = "markdown"
	}
	if !w.bot {
		return c.PostJSON(ctx, "https://api.ciscospark.com/v1/webhooks/incoming//"+w.token, map[string]string{kind: m.Body})
	}
	return c.Steps.Each(ctx, w.rooms, func(ctx context.Context, room string) error {
		if len(m.Attachments) == 0 {
			return w.post(ctx, c, notifier.JSON(map[string]string{"roomId": room, kind: m.Body}))
		}
		// A message holds one file at most; the text goes with the first.
		for i, a := range m.Attachments {
			parts := []notifier.FormPart{{Name: "roomId", Value: room}}
			if i == 0 && m.Body != "" {
				parts = append(parts, notifier.FormPart{Name: kind, Value: m.Body})
			}
			parts = append(parts, notifier.FormPart{Name: "files", File: a})
			err := c.Steps.Once("file "+strconv.Itoa(i)+" to "+room, func() error { return w.post(ctx, c, notifier.Multipart(parts...)) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *webex) post(ctx context.Context, c *notifier.Client, body *notifier.Body) error {
	return c.Post(ctx, "https://webexapis.com/v1/messages", body, map[string]string{"Authorization": "Bearer " + w.token})
}
