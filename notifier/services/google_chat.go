package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[googleChat]()

// googleChat posts to a Google Chat space through a webhook.
type googleChat struct {
	space, key, token, thread string
	threads                   bool
}

func (g *googleChat) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Google Chat", "https://developers.google.com/workspace/chat/quickstart/webhooks"
	s.Setup = "In the menu of the space open Apps & integrations, add a webhook and copy its URL, " +
		"which contains the workspace after spaces/, webhook_key as key and webhook_token as token."
	s.Groups(notifier.GroupChat)
	s.Words("google workspace", "hangouts", "google hangouts", "gsuite")
	s.URL("gchat://{workspace}/{webhook_key}/{webhook_token}[/{thread_key}]")
	s.Native("https://chat.googleapis.com/v1/spaces/{workspace}/messages?key={webhook_key}&token={webhook_token}")
	s.Hints(
		notifier.Hint{
			Text: `https://(?:chat|mail)\.google\.com/\S+`, Is: "a link into Google Chat",
			Note: "Google Chat needs the address of a webhook, which the menu of the space shows under Apps & integrations",
		},
	)
	s.Format = notifier.Markdown
	s.Acknowledge = notifier.AcknowledgeByButton
	s.Limits.Title, s.Limits.TitleSign, s.Limits.Body = 0, "*", 4000
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	// A mention is <users/all>. Whether a text is Markdown or the markup of Google
	// Chat is a setting of the app there.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.Secret(&g.space, "workspace", "ID of the space").Match(`\S`).Example("AAAAbCdEfGh")
	s.Secret(&g.key, "webhook_key", "key of the webhook").Alias("key").Match(`\S`).Example("AIzaSyAbCdEf0123456789")
	s.Secret(&g.token, "webhook_token", "token of the webhook").Alias("token").Match(`\S`).Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Secret(&g.thread, "thread_key", "key of the thread to reply in").Alias("thread", "threadkey").Match(`\S`)
	s.Bool(&g.threads, "threads", false, "put the messages about an incident in a thread of their own")
}

func (g *googleChat) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := m.Body
	if m.Format == notifier.Markdown && m.Source != notifier.Text {
		text = markup.DialectGoogleChat.Write(text, m.Source == notifier.Markdown && !m.Foreign)
	}
	payload, query := map[string]any{"text": text}, notifier.Fields("key", g.key, "token", g.token)
	if m.Link.URL != "" {
		payload["cardsV2"] = googleChatCard(m)
	}
	thread := g.thread
	if thread == "" && g.threads {
		thread = m.Incident.ID
	}
	if thread != "" {
		payload["thread"] = map[string]string{"thread_key": thread}
		query.Set("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD")
	}
	_, err := c.Do(ctx, &notifier.Request{
		URL:   "https://chat.googleapis.com/v1/spaces" + notifier.Path(g.space, "messages"),
		Query: query,
		Body:  notifier.JSON(payload),
	})
	return err
}

// maxButtons is how many answers to a question have a button each.
const maxButtons = 6

// googleChatCard returns a card with the buttons of m.
// See https://developers.google.com/workspace/chat/api/reference/rest/v1/cards#ButtonList.
func googleChatCard(m *notifier.Message) any {
	type object = map[string]any
	var buttons []any
	for _, l := range m.Buttons(maxButtons) {
		buttons = append(buttons, object{"text": l.Label, "onClick": object{"openLink": object{"url": l.URL}}})
	}
	widget := object{"buttonList": object{"buttons": buttons}}
	return []any{object{"cardId": "acknowledge", "card": object{"sections": []any{object{"widgets": []any{widget}}}}}}
}
