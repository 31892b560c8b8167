package services

import (
	"context"
	"strconv"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[prowl]()

// prowl pushes to the Prowl app on iOS.
type prowl struct {
	key, provider string
	priority      int
}

func (p *prowl) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Prowl", "https://www.prowlapp.com/api.php"
	s.Setup = "Log in at www.prowlapp.com and create an API key under API Keys."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "ios", "apple")
	s.URL("prowl://{apikey}[/{providerkey}]")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>[0-9a-f]{40})`, Is: "an API key", Guess: true},
	)
	s.Limits.Title, s.Limits.Body = 1024, 10000
	const key = "^[a-z0-9]{40}$"
	const example = "1234567890abcdef1234567890abcdef12345678"
	s.Secret(&p.key, "apikey", "API key").Match(key).Example(example)
	s.Secret(&p.provider, "providerkey", "provider key; raises the rate limit").Match(key).Example(example)
	s.Enum(&p.priority, "priority", "normal", pushPriorities, "priority of the message").Lenient()
}

func (p *prowl) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	form := notifier.Fields(
		"apikey", p.key, "application", m.Identity.Name, "event", m.Title, "description", m.Body,
		"priority", strconv.Itoa(p.priority),
	)
	if p.provider != "" {
		form.Set("providerkey", p.provider)
	}
	return c.PostForm(ctx, "https://api.prowlapp.com/publicapi/add", form)
}
