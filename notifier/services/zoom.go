package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[zoom]()

// zoom posts to a chat channel of Zoom through its Incoming Webhook app.
type zoom struct{ id, token, mode string }

func (z *zoom) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Zoom", "https://support.zoom.com/hc/en/article?id=zm_kb&sysparm_article=KB0067640"
	s.Setup = "Add the app Incoming Webhook to Zoom Team Chat, type /inc connect NAME in the channel, " +
		"and copy the endpoint and the verification token that the app sends you."
	s.Groups(notifier.GroupChat)
	s.Words("zoom team chat")
	s.URL("zoom://{webhook_id}/{token}")
	s.Native("https://inbots.zoom.us/incoming/hook/{webhook_id}")
	s.Limits.Body, s.Limits.InBody = 4000, true
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.Secret(&z.id, "webhook_id", "last part of the webhook's URL").Match(`^[a-z0-9_-]+$`).Example("AbCdEf0123456789GhIj")
	s.Secret(&z.token, "token", "verification token of the webhook").Match(`\S`).Example("AbCdEf0123456789")
	s.Choice(&z.mode, "mode", "full", []string{"full", "simple"}, "full shows the title as a heading, simple puts it before the text")
}

func (z *zoom) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	q := &notifier.Request{
		URL:    "https://inbots.zoom.us/incoming/hook" + notifier.Path(z.id),
		Header: map[string]string{"Authorization": z.token},
	}
	if z.mode == "simple" {
		q.Body = notifier.Bytes("", []byte(m.Text(": ")))
	} else {
		content := map[string]any{"body": []map[string]string{{"type": "message", "text": m.Body}}}
		if m.Title != "" {
			content["head"] = map[string]string{"text": m.Title}
		}
		q.Query = notifier.Fields("format", "full")
		q.Body = notifier.JSON(map[string]any{"content": content})
	}
	_, err := c.Do(ctx, q)
	return err
}
