package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// payload returns the request without recipients.
func (o *oneSignal) payload(m *notifier.Message) map[string]any {
	in := func(text string) map[string]string { return map[string]string{o.language: text} }
	payload := map[string]any{"app_id": o.app, "content_available": true}
	if o.template != "" {
		payload["template_id"] = o.template
	}
	if o.template == "" || o.contents {
		payload["contents"] = in(m.Body)
	}
	if m.Title != "" {
		payload["headings"] = in(m.Title)
	}
	if o.subtitle != "" {
		payload["subtitle"] = in(o.subtitle)
	}
	if icon := m.Icon(72); o.image && icon != "" {
		payload["large_icon"], payload["small_icon"] = icon, m.Icon(32)
	}
	if len(o.values) > 0 {
		payload["custom_data"] = o.values
	}
	if len(o.data) > 0 {
		payload["data"] = o.data
	}
	if id := m.NotificationID(); id != "" {
		// For apps and for browsers.
		payload["collapse_id"], payload["web_push_topic"] = id, id
	}
	return payload
}

func (o *oneSignal) post(ctx context.Context, c *notifier.Client, payload map[string]any) error {
	var answer struct {
		ID     *string
		Errors any
	}
	err := c.DoJSON(ctx, &notifier.Request{
		URL:    "https://api.onesignal.com/notifications",
		Header: map[string]string{"Authorization": "Basic " + o.key},
		Body:   notifier.JSON(payload),
	}, &answer)
	if err != nil {
		return err
	}
	// OneSignal accepts a message that reaches nobody, but gives it no ID.
	if answer.ID != nil && *answer.ID == "" {
		return refusedError(0, answer.Errors)
	}
	return nil
}
