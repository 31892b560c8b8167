package services

import (
	"context"
	"errors"
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
	s.Secret(&j.apikey, "apikey", "API key of the integration").Match(`\S`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.String(&j.user, "user", "", "who is shown as the sender")
	s.List(&j.targets, "targets", "@users, #teams, *schedules and ^escalations to alert").
		Alias("to").Normalize(jsmTarget).DropInvalid()
	s.Choice(&j.action, "action", "map", jsmActions, "map: failure and warning raise an alert, success closes it, info is a note")
	s.Enum(&j.priority, "priority", "normal", []notifier.Choice{
		{Name: "low", Value: 5, Synonyms: []string{"p5"}}, {Name: "moderate", Value: 4, Synonyms: []string{"p4"}},
		{Name: "normal", Value: 3, Synonyms: []string{"p3"}}, {Name: "high", Value: 2, Synonyms: []string{"p2"}},
		{Name: "emergency", Value: 1, Synonyms: []string{"p1"}},
	}, "priority of the alert, from p1, an emergency, to p5").Lenient()
	s.String(&j.entity, "entity", "", "what the alert is about, such as a host")
	s.String(&j.alias, "alias", "", "identity of the alert, by which later messages find it")
	s.List(&j.tags, "tags", "tags of the alert")
	s.Bool(&j.batch, "batch", false, "raise one alert for all targets")
	s.Map(&j.details, "+", "details", "detail of the alert to add")
	s.Map(&j.mapping, ":", "mapping", "what a type of message does instead, as in :info=new").Example("info=new")
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
