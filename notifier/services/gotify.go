package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[gotify]()

// gotify posts to a self-hosted Gotify server.
type gotify struct {
	notifier.Server
	path     []string
	token    string
	priority int
}

func (g *gotify) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Gotify", "https://gotify.net/docs/pushmsg"
	s.Setup = "Create an application under Apps in Gotify's web interface and copy its token; the token of a client cannot send."
	s.Groups(notifier.GroupPhone)
	s.Words("push", "phone", "android", "self-hosted push")
	s.URL("gotify[s]://{host}[:{port}][/{path...}]/{token}")
	s.Hints(
		notifier.Hint{Text: `(?<address>)(?<path>/\S*)?/message/?\?token=(?<token>A[\w.-]{14})`, Is: "the address for messages"},
		notifier.Hint{Text: `(?<token>A[\w.-]{14})`, Is: "the token of an application", Guess: true},
		notifier.Hint{
			Text: `C[\w.-]{14}`, Is: "the token of a client",
			Note:  "the token of a client cannot send messages; create an application under Apps and copy its token",
			Guess: true,
		},
	)
	s.Server(&g.Server)
	s.Path(&g.path, "path", "path of Gotify on the server")
	s.Secret(&g.token, "token", "application token").Example("AbCdEf.GhIjKlMn")
	s.Enum(&g.priority, "priority", "auto", []notifier.Choice{
		{Name: "auto", Value: gotifyAuto},
		{Name: "low", Value: 0},
		{Name: "moderate", Value: 3},
		{Name: "normal", Value: 5},
		{Name: "high", Value: 8},
		{Name: "emergency", Value: 10},
	}, "priority, also a number from 0 to 10; auto: high for a failure, else normal").Range(0, 10).Lenient()
	s.Param("host").Example("gotify.example.com")
}

// gotifyAuto is the priority that depends on the type of the message.
const gotifyAuto = -1

func (g *gotify) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	priority := g.priority
	switch {
	case priority != gotifyAuto:
	case m.Type == notifier.Failure:
		priority = 8
	default:
		priority = 5
	}
	payload := map[string]any{"title": m.Title, "message": m.Body, "priority": priority}
	extras := map[string]any{}
	if m.Format == notifier.Markdown {
		extras["client::display"] = map[string]string{"contentType": "text/markdown"}
	}
	if m.Link.URL != "" {
		// The app for Android opens it with a tap; the text contains it for other apps. See
		// https://gotify.net/docs/msgextras#clientnotification.
		extras["client::notification"] = map[string]any{"click": map[string]string{"url": m.Link.URL}}
	}
	if len(extras) > 0 {
		payload["extras"] = extras
	}
	return c.PostJSON(ctx, g.URL(append(append([]string{}, g.path...), "message")...), payload, "X-Gotify-Key", g.token)
}
