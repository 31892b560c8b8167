package services

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// create creates an alert for each target, or for each batch of targets.
func (j *jsm) create(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	// Alerts with the same alias are one alert, so that all targets of an incident
	// must be responders of one.
	tracked := j.alias == "" && m.Incident.ID != ""
	subject, size := j.subject(m), 1
	if j.batch || tracked {
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
	if tracked {
		aliases := j.aliases(m)
		return c.Steps.Each(ctx, aliases, func(ctx context.Context, alias string) error {
			_, err := j.post(ctx, c, m, alias, batches[keys[slices.Index(aliases, alias)]])
			return err
		})
	}
	if err := c.Steps.Once("forget", func() error {
		j.forget(ctx, c, subject)
		return nil
	}); err != nil {
		return err
	}
	return c.Steps.Each(ctx, keys, func(ctx context.Context, key string) error {
		request, err := j.post(ctx, c, m, j.alias, batches[key])
		if err == nil {
			j.remember(ctx, c, subject, request)
		}
		return err
	})
}

// post creates an alert for responders, or for the responders of the integration if there are
// none. It returns the ID of the request.
func (j *jsm) post(
	ctx context.Context, c *notifier.Client, m *notifier.Message, alias string, responders []string,
) (request string, err error) {
	payload := j.alert(m, alias)
	if responders != nil {
		payload["responders"] = jsmResponders(responders)
	}
	var answer struct {
		RequestID string `json:"requestId"`
	}
	err = c.DoJSON(ctx, &notifier.Request{URL: j.base, Header: j.headers(), Body: notifier.JSON(payload)}, &answer)
	if err == nil && answer.RequestID == "" {
		err = errors.New("the service's answer has no requestId")
	}
	return answer.RequestID, err
}

func (j *jsm) alert(m *notifier.Message, alias string) map[string]any {
	details := map[string]string{"type": string(m.Type)}
	if m.Link.URL != "" {
		details[strings.TrimSuffix(m.Link.Field(), "_url")] = m.Link.URL
	}
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
	for name, value := range map[string]string{"entity": j.entity, "alias": alias, "user": j.user} {
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
