package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushdeer]()

// pushdeer pushes to the devices of a PushDeer account, through PushDeer's server
// or a self-hosted one.
type pushdeer struct {
	notifier.Server
	key string
}

func (p *pushdeer) Describe(s *notifier.Schema) {
	s.Name, s.Site = "PushDeer", "https://www.pushdeer.com/dev.html"
	s.Setup = "Register your device in the PushDeer app, then create a key under Key and copy it."
	s.Groups(notifier.GroupPhone, notifier.GroupRegional)
	s.Words("iphone", "ios", "apple", "china")
	s.URL("pushdeer[s]://{pushkey}", "pushdeer[s]://{host}[:{port}]/{pushkey}")
	s.Way(1, "through the server of PushDeer")
	s.Way(2, "with a server of your own")
	s.Server(&p.Server)
	s.Secret(&p.key, "pushkey", "key of the device or account").Match(`^[a-z0-9]+$`).Example("PDU1234TAbCdEf0123456789")
	s.Param("host").Example("pushdeer.example.com")
}

func (p *pushdeer) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	server := p.Server
	if server.Host == "" {
		server.Host = "api2.pushdeer.com"
	}
	text, more := m.Title, m.Body
	if text == "" {
		text, more = more, ""
	}
	return checkedDo(ctx, c, &notifier.Request{
		URL:   server.URL("message", "push"),
		Query: notifier.Fields("pushkey", p.key),
		Body:  notifier.Form(notifier.Fields("text", text, "desp", more, "type", "text")),
	}, "code", "error", 0)
}
