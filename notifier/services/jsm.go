package services

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// jsm is what Opsgenie and its successor, Jira Service Management, have in
// common: alerts, which later messages acknowledge, close or add to.
type jsm struct {
	base   string // address of the alerts
	header map[string]string

	apikey, user     string
	targets, tags    []string
	action           string
	priority         int
	entity, alias    string
	batch            bool
	details, mapping map[string]string
	actions          map[notifier.Type]string

	mu       sync.Mutex
	requests map[string][]string // what the service called the creation of the alerts, by subject
	order    []string            // of subjects, the newest last
}

const (
	jsmBatch    = 50   // responders that go into one alert
	jsmMessage  = 130  // characters of an alert's message
	jsmSubjects = 1000 // subjects whose alerts are remembered
)

var jsmActions = []string{"map", "new", "close", "delete", "acknowledge", "note"}

func (j *jsm) describe(s *notifier.Schema, scheme string) {
	s.URL(scheme + "://[{user}@]{apikey}[/{targets...}]")
	s.Limits.Body = 15000
	s.Secret(&j.apikey, "apikey", "API key of the integration").Match(`\S`)
	s.String(&j.user, "user", "", "who is shown as the sender")
	s.List(&j.targets, "targets", "@users, #teams, *schedules and ^escalations to alert").
		Alias("to").Item(jsmTarget).DropInvalid()
	s.Choice(&j.action, "action", "map", jsmActions, "what the message does; map goes by its type")
	s.Enum(&j.priority, "priority", "normal", []notifier.Choice{
		{Name: "low", Value: 1, Synonyms: []string{"p1"}}, {Name: "moderate", Value: 2, Synonyms: []string{"p2"}},
		{Name: "normal", Value: 3, Synonyms: []string{"p3"}}, {Name: "high", Value: 4, Synonyms: []string{"p4"}},
		{Name: "emergency", Value: 5, Synonyms: []string{"p5"}},
	}, "number behind the P of the alert's priority").Lenient()
	s.String(&j.entity, "entity", "", "what the alert is about, such as a host")
	s.String(&j.alias, "alias", "", "identity of the alert")
	s.List(&j.tags, "tags", "tags of the alert")
	s.Bool(&j.batch, "batch", false, "raise one alert for all targets")
	s.Map(&j.details, "+", "details", "detail of the alert to add")
	s.Map(&j.mapping, ":", "mapping", "what a type of message does, as in :warning=note").Example("warning=note")
}

func jsmTarget(s string) (string, error) {
	if len(s) < 2 {
		return "", errors.New("is too short for a name")
	}
	return s, nil
}

// Finish works out what each type of message does.
func (j *jsm) Finish(*notifier.Schema) (err error) {
	slices.Sort(j.targets)
	j.actions, err = mapTypes(map[notifier.Type]string{
		notifier.Info: "note", notifier.Success: "close", notifier.Warning: "new", notifier.Failure: "new",
	}, j.mapping, jsmActions[1:])
	return err
}

func (j *jsm) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	action := j.action
	if action == "map" {
		action = j.actions[m.Type]
	}
	if action == "new" {
		return j.create(ctx, c, m)
	}
	return j.follow(ctx, c, m, action)
}

// create raises an alert for each target, or each batch of them.
func (j *jsm) create(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	subject, atOnce := j.subject(m), 1
	if j.batch {
		atOnce = jsmBatch
	}
	batches, keys := map[string][]string{}, []string{}
	for batch := range slices.Chunk(j.targets, atOnce) {
		batches[batch[0]] = batch
		keys = append(keys, batch[0])
	}
	if len(keys) == 0 {
		keys = []string{""}
	}
	if err := c.Once("forget", func() error { j.forget(subject); return nil }); err != nil {
		return err
	}
	return c.Each(ctx, keys, func(ctx context.Context, key string) error {
		payload := j.alert(m)
		if batch := batches[key]; batch != nil {
			payload["responders"] = jsmResponders(batch)
		}
		var answer struct {
			RequestID string `json:"requestId"`
		}
		err := c.DoJSON(ctx, &notifier.Request{URL: j.base, Header: j.headers(), Body: notifier.JSON(payload)}, &answer)
		if err == nil && answer.RequestID == "" {
			err = errors.New("the service's answer says nothing of an alert")
		}
		if err == nil {
			j.remember(subject, answer.RequestID)
		}
		return err
	})
}

func (j *jsm) alert(m *notifier.Message) map[string]any {
	details := map[string]string{"type": string(m.Type)}
	for name, value := range j.details {
		details[name] = value
	}
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
	for name, value := range j.header {
		h[name] = value
	}
	return h
}

var uuidPattern = regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// jsmResponders are targets in the shape that the service wants. A target
// without a sign before it is a user.
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
