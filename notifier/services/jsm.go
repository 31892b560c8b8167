package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// jsm is the common part of [opsgenie] and [jira]. It creates alerts, which
// later messages acknowledge, close, delete or add notes to.
type jsm struct {
	base   string // URL of the alerts in the API
	header map[string]string

	apikey, user     string
	targets, tags    []string
	action           string
	priority         int
	entity, alias    string
	batch            bool
	details, mapping map[string]string
	actions          map[notifier.Type]string

	mu     sync.Mutex
	alerts jsmAlerts
}

const (
	jsmBatch    = 50   // max responders of an alert
	jsmMessage  = 130  // max characters of an alert's message
	jsmSubjects = 1000 // max subjects whose alerts are remembered
)

var jsmActions = []string{"map", "new", "close", "delete", "acknowledge", "note"}

func (j *jsm) describe(s *notifier.Schema, scheme string) {
	s.URL(scheme + "://[{user}@]{apikey}[/{targets...}]")
	s.Limits.Body = 15000
	s.Acknowledge = notifier.AcknowledgeByLink
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Secret(&j.apikey, "apikey", "API key of the integration").Match(`\S`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.String(&j.user, "user", "", "name shown as the sender")
	s.List(&j.targets, "targets", "@users, #teams, *schedules and ^escalations to alert").
		Alias("to").Normalize(jsmTarget).DropInvalid()
	s.Choice(&j.action, "action", "map", jsmActions, "map: warning, failure create an alert, success closes it, info adds a note")
	s.Enum(&j.priority, "priority", "p3", []notifier.Choice{
		{Name: "p5", Value: 5, Synonyms: []string{"low"}},
		{Name: "p4", Value: 4, Synonyms: []string{"moderate"}},
		{Name: "p3", Value: 3, Synonyms: []string{"normal"}},
		{Name: "p2", Value: 2, Synonyms: []string{"high"}},
		{Name: "p1", Value: 1, Synonyms: []string{"emergency"}},
	}, "priority of the alert, from p1 (emergency) to p5").Lenient().Note(jsmPriorityNote)
	s.String(&j.entity, "entity", "", "what the alert is about, for example a host")
	s.String(&j.alias, "alias", "", "alias, by which messages find the alert; default: by the incident")
	s.List(&j.tags, "tags", "tags of the alert")
	s.Bool(&j.batch, "batch", false, "create one alert for up to 50 targets")
	s.Map(&j.details, "+", "details", "detail to add to the alert")
	s.Map(&j.mapping, ":", "mapping", "action for a type of message, as in :info=new").Example("info=new").Public()
}

// jsmPriorityNote returns the warning for a word that means another priority in
// Apprise, which has them in reverse order: emergency is P5 there, and P1 is
// printed as low.
func jsmPriorityNote(word string) string {
	var here, there string
	switch strings.ToLower(word[:1]) {
	case "l":
		here, there = "p5", "p1"
	case "m":
		here, there = "p4", "p2"
	case "h":
		here, there = "p2", "p4"
	case "e":
		here, there = "p1", "p5"
	default:
		return ""
	}
	return fmt.Sprintf("%s is %s here and %s in Apprise; write %s or %s instead of the word", word, here, there, here, there)
}

func jsmTarget(s string) (string, error) {
	if len(s) < 2 {
		return "", errors.New("is too short for a name")
	}
	return s, nil
}

var jsmDefaults = map[notifier.Type]string{
	notifier.Info: "note", notifier.Success: "close", notifier.Warning: "new", notifier.Failure: "new",
}

// Finish sets the action of each type of message.
func (j *jsm) Finish(s *notifier.Schema) (err error) {
	s.Recipients = max(len(j.targets), 1)
	slices.Sort(j.targets)
	j.actions, err = mapTypes(jsmDefaults, j.mapping, jsmActions[1:])
	return err
}

func (j *jsm) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	action := j.action
	if action == "map" {
		action = j.actions[m.Type]
		if m.Incident.State == notifier.Acknowledged && action == jsmDefaults[m.Type] {
			action = "acknowledge"
		}
	}
	if action == "new" && m.Part > 0 && len(j.aliases(m)) > 0 {
		action = "note" // an alert with this alias exists
	}
	if action == "new" {
		return j.create(ctx, c, m)
	}
	return j.act(ctx, c, m, action)
}
