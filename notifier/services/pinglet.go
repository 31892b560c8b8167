package services

import (
	"context"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pinglet]()

// pinglet posts to a topic of a Pinglet server.
type pinglet struct {
	notifier.Server
	path             []string
	token            string
	namespace, topic string
	priority         string
	badges, data     map[string]string
}

func (p *pinglet) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pinglet", "https://pinglet.co.uk/"
	s.Setup = "The token is an API key of the Pinglet server; the last two parts of the URL are the namespace and the topic to post to."
	s.Groups(notifier.GroupPhone)
	s.Words("self-hosted push")
	s.URL("pinglet[s]://{token}@{host}[:{port}][/{path...}]/{namespace}/{topic}")
	s.Limits.Body = 3000
	s.Server(&p.Server)
	s.Path(&p.path, "path", "path of Pinglet on the server")
	s.Secret(&p.token, "token", "API key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.String(&p.namespace, "namespace", "", "namespace of the topic").Example("home")
	s.String(&p.topic, "topic", "", "topic to post to").Example("alerts")
	s.Choice(&p.priority, "priority", "normal", []string{"silent", "normal", "urgent"}, "priority of the message").Lenient()
	s.Map(&p.badges, ":", "badges", "label to show, and its value; three at most")
	s.Map(&p.data, "+", "data", "metadata to add")
	s.Param("host").Example("pinglet.example.com")
}

// Finish cuts badges and metadata to the limits of the server.
func (p *pinglet) Finish(*notifier.Schema) error {
	p.badges = pingletCut(p.badges, 3, 24, 32)
	p.data = pingletCut(p.data, len(p.data), 64, 256)
	return nil
}

func pingletCut(m map[string]string, maxItems, maxKey, maxValue int) map[string]string {
	cut := func(s string, n int) string {
		r := []rune(s)
		return string(r[:min(n, len(r))])
	}
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(out) < maxItems {
			out[cut(k, maxKey)] = cut(m[k], maxValue)
		}
	}
	return out
}

func (p *pinglet) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	level := string(m.Type)
	if m.Type == notifier.Failure {
		level = "error"
	}
	payload := map[string]any{"message": m.Body, "priority": p.priority, "level": level}
	if m.Title != "" {
		payload["title"] = m.Title
	}
	if len(p.badges) > 0 {
		payload["badges"] = p.badges
	}
	if len(p.data) > 0 {
		payload["data"] = p.data
	}
	address := p.URL(append(slices.Clone(p.path), p.namespace, p.topic)...)
	return c.PostJSON(ctx, address, payload, "Authorization", "Bearer "+p.token)
}
