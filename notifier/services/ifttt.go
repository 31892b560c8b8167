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
	s.Setup = "Connect the service Webhooks at ifttt.com and open its Documentation, which shows your key; an event is the event name of one of your applets."
	s.URL("ifttt://{webhook_id|events}/{events...}", "ifttt://{webhook_id}@{events...}")
	s.Native("https://maker.ifttt.com/use/{webhook_id}[/{events...}]")
	s.Secret(&i.key, "webhook_id", "key of the Webhooks service").Example("bAbCdEf0123456789GhIjKl")
	s.List(&i.events, "events", "names of events").Alias("to").Example("disk_full")
	s.Map(&i.set, "+", "set", "text for value1, value2 or value3").Example("value3=disk")
	s.Map(&i.drop, "-", "drop", "value1, value2 or value3 to leave out").Example("value3=")
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
