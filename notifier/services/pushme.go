package services

import (
	"context"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushme]()

// pushme pushes to the devices of a PushMe account.
type pushme struct {
	token  string
	status bool
}

func (p *pushme) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PushMe", "https://push.i-i.me/"
	s.Setup = "Install the PushMe app and copy the push_key that it shows."
	s.Groups(notifier.GroupPhone, notifier.GroupRegional)
	s.Words("android", "china")
	s.URL("pushme://{token}")
	s.Secret(&p.token, "token", "key of the account").Alias("push_key").Example("AbCdEf0123456789GhIj")
	s.Bool(&p.status, "status", true, "put a symbol of the message's type before the title")
}

func (p *pushme) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	title, kind := m.Title, "text"
	if p.status {
		title = strings.TrimSpace(m.Type.Symbol() + " " + title)
	}
	if m.Format == notifier.Markdown {
		kind = "markdown"
	}
	_, err := c.Do(ctx, &notifier.Request{
		Method: http.MethodPost,
		URL:    "https://push.i-i.me/",
		Query:  notifier.Fields("push_key", p.token, "title", title, "content", m.Body, "type", kind),
	})
	return err
}
