package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[jsonHook]()

// jsonHook posts the message as a JSON object to any web server.
type jsonHook struct {
	webhook
	params map[string]string
}

func (j *jsonHook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "JSON", "https://www.rfc-editor.org/rfc/rfc8259"
	s.Setup = "A web server of yours must accept a POST request with a JSON object at this address; there is nothing to register."
	j.describe(s, "json[s]")
	describeParams(s, &j.params)
}

func (j *jsonHook) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	files := make([]map[string]string, len(m.Attachments))
	for i, a := range m.Attachments {
		files[i] = map[string]string{"filename": a.Name, "base64": notifier.Base64(a), "mimetype": a.ContentType}
	}
	payload := map[string]any{}
	for _, f := range j.fields(
		field{"version", "1.0"}, field{"title", m.Title}, field{"message", m.Body},
		field{"attachments", files}, field{"type", string(m.Type)},
	) {
		payload[f.name] = f.value
	}
	q := j.request(notifier.JSON(payload, m.Attachments...))
	q.Query = values(j.params)
	_, err := c.Do(ctx, q)
	return err
}
