package services

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pushy]()

// pushy pushes through Pushy to devices and to the subscribers of topics.
type pushy struct {
	key             string
	topics, devices []string
	sound           string
	badge           int
}

func (p *pushy) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pushy", "https://pushy.me/docs/api/send-notifications"
	s.Setup = "Open your app in the Pushy dashboard and copy the Secret API Key under API Authentication."
	s.Groups(notifier.GroupPhone)
	s.Words("mobile app", "android")
	s.URL("pushy://{apikey}/{targets...}")
	s.Limits.Body = 4096
	s.Secret(&p.key, "apikey", "secret API key of the app").Alias("key").
		Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.List(&p.topics, "targets", "topics and @devices",
		notifier.Prefixed{Prefix: "@", Items: &p.devices, Doc: "token of a device"}).Alias("to").Match("^[#@]?[a-z0-9]+$").
		Normalize(func(s string) (string, error) { return strings.TrimPrefix(s, "#"), nil }).Example("alerts")
	s.String(&p.sound, "sound", "", "sound file of the app to play")
	s.Int(&p.badge, "badge", -1, "number on the app's icon").Range(0, 1<<31-1).NoDefault().Lenient()
}

func (p *pushy) Finish(*notifier.Schema) error {
	if len(p.topics)+len(p.devices) == 0 {
		return errors.New("the URL has no target; add a topic or a @device to the path")
	}
	return nil
}

func (p *pushy) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	shown := omitEmpty(map[string]any{"title": m.Title, "sound": p.sound})
	shown["body"] = m.Body
	if p.badge >= 0 {
		shown["badge"] = p.badge
	}
	return c.Steps.Each(ctx, slices.Concat(p.topics, p.devices), func(ctx context.Context, target string) error {
		var answer map[string]any
		err := c.DoJSON(ctx, &notifier.Request{
			URL: "https://api.pushy.me/push", Query: notifier.Fields("api_key", p.key),
			Header: map[string]string{"Accepts": "application/json"},
			Body:   notifier.JSON(map[string]any{"to": target, "data": map[string]string{"message": m.Body}, "notification": shown}),
		}, &answer)
		if err == nil && answer["success"] != true {
			err = refusedError(0, answer["error"])
		}
		return err
	})
}
