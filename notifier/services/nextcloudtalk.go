package services

import (
	"context"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[nextcloudTalk]()

// nextcloudTalk posts to conversations of Nextcloud Talk.
type nextcloudTalk struct {
	nextcloudServer
	rooms []string
}

func (n *nextcloudTalk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Nextcloud Talk", "https://nextcloud-talk.readthedocs.io/en/latest/chat/"
	s.Setup = "Create an app password under Settings, Security in Nextcloud; the token of a conversation is the part of its link after /call/."
	s.Groups(notifier.GroupChat)
	s.Words("spreed")
	s.URL("nctalk[s]://{user}:{password}@{host}[:{port}]/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<address>)(?:/index\.php)?/call/(?<targets>[a-z0-9]{6,12})/?`, Is: "the link to a conversation"},
	)
	n.describe(s)
	// Older servers show no Markdown, and so no escapes.
	s.Foreign = &notifier.ForeignText{Title: true, Escape: chattext.AsIs, Mentions: chattext.BreakAll}
	s.List(&n.rooms, "targets", "tokens of the conversations").Alias("to").Example("abcd1234")
	s.Param("host").Example("cloud.example.com")
	s.Param("user").Example("alerts")
	s.Param("password").Example("app-password")
}

func (n *nextcloudTalk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := *m
	if text.Title == "" {
		text.Title = m.Identity.Description
	}
	path := "/ocs/v2.php/apps/spreed/api/v1/chat/"
	if strings.Trim(n.prefix, "/") == "" {
		path = "/" + path // with two slashes, as existing clients send it
	}
	message := map[string]string{"message": text.Text("\r\n")}
	return c.Steps.Each(ctx, n.rooms, func(ctx context.Context, room string) error {
		_, err := c.Do(ctx, n.request(path+url.PathEscape(room), notifier.JSON(message)))
		return err
	})
}
