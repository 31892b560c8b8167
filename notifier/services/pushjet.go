package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushjet]()

// pushjet posts to a self-hosted Pushjet server.
type pushjet struct {
	notifier.Server
	secret string
}

func (p *pushjet) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushjet", "https://github.com/Pushjet/Pushjet-Server-Api"
	s.Setup = "Create a service through the API of your Pushjet server and copy its secret."
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Groups(notifier.GroupPhone)
	s.Words("self-hosted push", "android")
	s.URL("pjet[s]://[{user}[:{password}]@]{host}[:{port}]/{secret_key}")
	s.Server(&p.Server)
	s.Secret(&p.secret, "secret_key", "secret key of the service").Alias("secret").Example("0123456789abcdef0123456789abcdef")
	s.Param("host").Example("pushjet.example.com")
}

func (p *pushjet) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var link any // null for none
	if m.Link.URL != "" {
		link = m.Link.URL
	}
	body := notifier.JSON(map[string]any{"message": m.Body, "title": m.Title, "link": link, "level": nil})
	// Existing clients send the JSON with the content type of a form.
	body.ContentType = "application/x-www-form-urlencoded; charset=utf-8"
	_, err := c.Do(ctx, &notifier.Request{
		URL:   p.URL("message") + "/",
		Query: notifier.Fields("secret", p.secret),
		Login: &p.Server,
		Body:  body,
	})
	return err
}
