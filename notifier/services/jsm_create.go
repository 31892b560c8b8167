package services

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// create creates an alert for each target, or for each batch of targets.
func (j *jsm) create(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	subject, size := j.subject(m), 1
	if j.batch {
		size = jsmBatch
	}
	batches, keys := map[string][]string{}, []string{}
	for batch := range slices.Chunk(j.targets, size) {
		batches[batch[0]] = batch
		keys = append(keys, batch[0])
	}
	if len(keys) == 0 {
		keys = []string{""}
	}
	if err := c.Steps.Once("forget", func() error {
		j.forget(ctx, c, subject)
		return nil
	}); err != nil {
		return err
	}
	return c.Steps.Each(ctx, keys, func(ctx context.Context, key string) error {
		payload := j.alert(m)
		if batch := batches[key]; batch != nil {
			payload["responders"] = jsmResponders(batch)
		}
		var answer struct {
			RequestID string `json:"requestId"`
		}
		err := c.DoJSON(ctx, &notifier.Request{URL: j.base, Header: j.headers(), Body: notifier.JSON(payload)}, &answer)
		if err == nil && answer.RequestID == "" {
			err = errors.New("the service's answer has no requestId")
		}
		if err == nil {
			j.remember(ctx, c, subject, answer.RequestID)
		}
		return err
	})
}

func (j *jsm) alert(m *notifier.Message) map[string]any {
	details := map[string]string{"type": string(m.Type)}
	maps.Copy(details, j.details)
	message := m.Title
	if message == "" {
		message = m.Body
	}
	if r := []rune(message); len(r) > jsmMessage {
		message = string(r[:jsmMessage-3]) + "..."
	}
	payload := map[string]any{
		"source": m.Identity.Description, "message": message, "description": m.Body,
		"details": details, "priority": "P" + string(rune('0'+j.priority)),
	}
	for name, value := range map[string]string{"entity": j.entity, "alias": j.alias, "user": j.user} {
		if value != "" {
			payload[name] = value
		}
	}
	if len(j.tags) > 0 {
		payload["tags"] = j.tags
	}
	return payload
}

func (j *jsm) headers() map[string]string {
	h := map[string]string{"Authorization": "GenieKey " + j.apikey}
	maps.Copy(h, j.header)
	return h
}

var uuidPattern = lazyregexp.New(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// jsmResponders returns targets as the API expects them. A target without a
// prefix is a user.
func jsmResponders(targets []string) (out []map[string]string) {
	kinds := map[byte]string{'@': "user", '#': "team", '*': "schedule", '^': "escalation"}
	for _, t := range targets {
		kind, name := kinds[t[0]], t[1:]
		if kind == "" {
			kind, name = "user", t
		}
		key := "name"
		switch {
		case uuidPattern.MatchString(name):
			key = "id"
		case kind == "user":
			key = "username"
		}
		out = append(out, map[string]string{"type": kind, key: name})
	}
	return out
}
