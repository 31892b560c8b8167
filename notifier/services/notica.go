package services

import (
	"context"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[notica]()

// notica shows a notification in browsers that have a Notica page open. The
// server is notica.us or a self-hosted one.
type notica struct {
	notifier.Server
	path   []string
	token  string
	header map[string]string
}

func (n *notica) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Notica", "https://github.com/tannercollin/Notica#usage"
	s.Setup = "Open notica.us in a browser, allow notifications and keep the page open; the token is the part of its address after the ?."
	s.Groups(notifier.GroupPhone)
	s.Words("browser")
	s.URL("notica[s]://{token}", "notica[s]://[{user}[:{password}]@]{host}[:{port}][/{path...}]/{token}")
	s.Way(1, "through notica.us")
	s.Way(2, "with a server of your own")
	s.Native("https://notica.us[/]?{token}")
	s.Limits.Title = 0
	s.Server(&n.Server)
	s.Path(&n.path, "path", "path of Notica on the server")
	s.Secret(&n.token, "token", "part of the page's address after the ?").Normalize(noticaToken).Example("AbCdEf")
	s.Headers(&n.header, "headers", "HTTP header to add for a self-hosted server")
	s.Param("host").Example("notica.example.com")
}

func noticaToken(s string) (string, error) { return strings.TrimLeft(s, "?"), nil }

func (n *notica) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	q := &notifier.Request{
		URL: "https://notica.us/",
		// The message is the name of a form field that has no value.
		Body: notifier.Bytes("application/x-www-form-urlencoded", []byte("d:"+url.QueryEscape(m.Body))),
	}
	if n.Host != "" {
		q.URL, q.Header, q.Login = n.URL(n.path...)+"/", n.header, &n.Server
	}
	q.URL += "?" + url.QueryEscape(n.token)
	_, err := c.Do(ctx, q)
	return err
}
