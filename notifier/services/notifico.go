package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[notifico]()

// notifico posts to the IRC channels of a Notifico project.
type notifico struct {
	notifier.Server
	project string
	hook    string
	color   bool
	prefix  bool
}

func (n *notifico) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Notifico", "https://n.tkte.ch/"
	s.Setup = "Add a plain text message hook to your project in Notifico and " +
		"copy its address, whose last two parts are project_id and msghook."
	s.Groups(notifier.GroupChat)
	s.Words("irc notifications")
	s.URL(
		"notifico[s]://{project_id}/{msghook}",
		"notifico[s]://[{user}[:{password}]@]{host}[:{port}]/{project_id}/{msghook}",
	)
	s.Way(1, "through n.tkte.ch")
	s.Way(2, "with a server of your own")
	s.Native("https://n.tkte.ch/h/{project_id}/{msghook}")
	s.Limits = markup.Limits{Body: 512}
	s.Server(&n.Server)
	s.Secret(&n.project, "project_id", "number of the project").Match(`^[0-9]+$`).Alias("project").Example("1234")
	s.Secret(&n.hook, "msghook", "key of the message hook").Match(`^[a-z0-9]+$`).Alias("token").Example("0123456789abcdef0123456789abcdef")
	s.Bool(&n.color, "color", true, "colour the prefix, and keep colours in messages")
	s.Bool(&n.prefix, "prefix", true, "begin with the message's type and the sender's name")
	s.Param("host").Example("notifico.example.com")
}

// Formatting codes of IRC (https://modern.ircdocs.horse/formatting).
const (
	notificoBold  = "\x02"
	notificoColor = "\x03"
	notificoReset = "\x0f"
)

var notificoColorCode = lazyregexp.New(notificoColor + `([0-9]{1,2}(,[0-9]{1,2})?)?`)

var notificoMarks = map[notifier.Type]struct{ color, mark string }{
	notifier.Info:    {"10", "i"},
	notifier.Success: {"09", "✔"},
	notifier.Warning: {"07", "!"},
	notifier.Failure: {"04", "✗"},
}

func (n *notifico) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	address := "https://n.tkte.ch"
	if n.Host != "" {
		address = n.URL()
	}
	_, err := c.Do(ctx, &notifier.Request{
		URL:      address + "/h" + notifier.Path(n.project, n.hook),
		Query:    notifier.Fields("payload", n.text(m)),
		Header:   map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
		User:     n.User,
		Password: n.Password,
	})
	return err
}

func (n *notifico) text(m *notifier.Message) string {
	body, t := m.Body, notificoMarks[m.Type]
	if !n.color {
		body = notificoColorCode.ReplaceAllString(body, "")
	}
	switch {
	case !n.prefix:
		return body
	case !n.color:
		return "[" + t.mark + "] " + m.Identity.Name + ": " + body
	}
	return notificoColor + t.color + "[" + t.mark + "]" + notificoColor + " " +
		notificoBold + m.Identity.Name + notificoReset + ": " + body + notificoReset
}
