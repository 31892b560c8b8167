package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[ifttt]()

// ifttt triggers events of IFTTT's Webhooks service.
type ifttt struct {
	key       string
	events    []string
	set, drop map[string]string
}

func (i *ifttt) Describe(s *notifier.Schema) {
	s.Name, s.Site = "IFTTT", "https://help.ifttt.com/hc/en-us/articles/115010230347-Webhooks-service-FAQ"
	s.Setup = "Connect the service Webhooks at ifttt.com and open its Documentation, " +
		"which shows your key; an event is the event name of one of your applets."
	s.Groups(notifier.GroupServer, notifier.GroupHome)
	s.Words("if this then that", "applet", "automation")
	s.URL("ifttt://{webhook_id|events}/{events...}", "ifttt://{webhook_id}@{events...}")
	s.Way(2, "with the key before an @")
	s.Way(1, "with the key in place of a host")
	s.Native("https://maker.ifttt.com/use/{webhook_id}[/{events...}]")
	s.Hints(
		notifier.Hint{
			Text: `https://maker\.ifttt\.com/trigger/(?<events>[\w-]+)/(?:json/)?with/key/(?<webhook_id>[\w-]+)`,
			Is:   "the address of an event",
		},
	)
	s.Secret(&i.key, "webhook_id", "key of the Webhooks service").Example("bAbCdEf0123456789GhIjKl")
	s.List(&i.events, "events", "names of events").Alias("to").Example("disk_full")
	s.Map(&i.set, "+", "add_tokens", "text for value1, value2 or value3").Example("value3=disk")
	s.Map(&i.drop, "-", "del_tokens", "value1, value2 or value3 to leave out").Example("value3=")
}

func (i *ifttt) Finish(*notifier.Schema) error {
	if len(i.events) == 0 {
		return errors.New("the URL has no event; add the name of one to the path, as in ifttt://key/disk_full")
	}
	return nil
}

func (i *ifttt) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	values := map[string]string{"value1": m.Title, "value2": m.Body, "value3": string(m.Type)}
	for name, text := range i.set {
		if _, known := values[name]; !known {
			c.Warn("IFTTT accepts only value1, value2 and value3; other fields in the URL are left out")
			continue
		}
		values[name] = text
	}
	for name := range i.drop {
		delete(values, name)
	}
	return c.Steps.Each(ctx, i.events, func(ctx context.Context, event string) error {
		return c.PostJSON(ctx, "https://maker.ifttt.com"+notifier.Path("trigger", event, "with", "key", i.key), values)
	})
}
