package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// subject returns the key under which the alerts of m are remembered.
func (j *jsm) subject(m *notifier.Message) string {
	for _, s := range []string{j.entity, j.alias, m.Title} {
		if s != "" {
			return s
		}
	}
	return m.Identity.Name
}

// aliases returns the aliases of the alerts about the same subject as m: the URL's alias, or the
// aliases of the incident. Without both it returns nil.
func (j *jsm) aliases(m *notifier.Message) []string {
	if j.alias != "" {
		return []string{j.alias}
	}
	if m.Incident.ID == "" {
		return nil
	}
	out := []string{m.Incident.ID}
	for n := 2; (n-1)*jsmBatch < len(j.targets); n++ {
		out = append(out, fmt.Sprint(m.Incident.ID, "-", n))
	}
	return out
}

// jsmAlerts are the alerts that a destination has created.
type jsmAlerts struct {
	Requests map[string][]string // IDs of the requests that created alerts, by subject
	Order    []string            // subjects, oldest first
}

func (a *jsmAlerts) remember(subject, request string) {
	if a.Requests == nil {
		a.Requests = map[string][]string{}
	}
	if a.Requests[subject] == nil {
		a.Order = append(a.Order, subject)
	}
	a.Requests[subject] = append(a.Requests[subject], request)
	if len(a.Order) > jsmSubjects {
		delete(a.Requests, a.Order[0])
		a.Order = a.Order[1:]
	}
}

// forget reports whether there was something to forget.
func (a *jsmAlerts) forget(subject string) bool {
	if a.Requests[subject] == nil {
		return false
	}
	delete(a.Requests, subject)
	a.Order = slices.DeleteFunc(a.Order, func(s string) bool { return s == subject })
	return true
}

// savedAlerts is the name of the alerts that are kept over a restart.
const savedAlerts = "alerts"

// forget forgets the alerts for a subject.
func (j *jsm) forget(ctx context.Context, c *notifier.Client, subject string) {
	j.update(ctx, c, func(a *jsmAlerts) bool { return a.forget(subject) })
}

// remember records that a request has created an alert for a subject.
func (j *jsm) remember(ctx context.Context, c *notifier.Client, subject, request string) {
	j.update(ctx, c, func(a *jsmAlerts) bool {
		a.remember(subject, request)
		return true
	})
}

// update changes the alerts, also those that are kept over a restart. change
// reports whether it has changed anything.
func (j *jsm) update(ctx context.Context, c *notifier.Client, change func(*jsmAlerts) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.load(ctx, c)
	if change(&j.alerts) {
		c.SaveState(ctx, savedAlerts, j.alerts)
	}
}

// load reads the alerts that are kept. The caller holds the lock.
func (j *jsm) load(ctx context.Context, c *notifier.Client) {
	var saved jsmAlerts
	if c.LoadState(ctx, savedAlerts, &saved) {
		j.alerts = saved
	}
}

// remembered returns the requests that created alerts for a subject.
func (j *jsm) remembered(ctx context.Context, c *notifier.Client, subject string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.alerts.Requests[subject]) == 0 {
		j.load(ctx, c)
	}
	return slices.Clone(j.alerts.Requests[subject])
}

// act applies action to the alerts with the aliases of m, or else to the alerts
// that this destination created for the same subject. If there are none, it
// skips the message.
func (j *jsm) act(ctx context.Context, c *notifier.Client, m *notifier.Message, action string) error {
	if aliases := j.aliases(m); len(aliases) > 0 {
		return c.Steps.Each(ctx, aliases, func(ctx context.Context, alias string) error {
			_, err := c.Do(ctx, j.actionRequest(m, action, "alias", alias))
			return err
		})
	}
	subject := j.subject(m)
	requests := j.remembered(ctx, c, subject)
	if len(requests) == 0 {
		j.skip(c, m, action)
		return nil
	}
	err := c.Steps.Each(ctx, requests, func(ctx context.Context, request string) error {
		alert, err := j.alertID(ctx, c, request)
		if err != nil {
			return err
		}
		_, err = c.Do(ctx, j.actionRequest(m, action, "id", alert))
		return err
	})
	if err == nil && action == "delete" {
		j.forget(ctx, c, subject)
	}
	return err
}

// skip reports that the message has no effect, and how to change that.
func (j *jsm) skip(c *notifier.Client, m *notifier.Message, action string) {
	remedy := "action=new"
	if j.action == "map" {
		remedy = ":" + string(m.Type) + "=new"
	}
	c.Skip("nothing was sent: a message of type %s would %s an alert about the same subject, and no such alert is known; "+
		"send a message of type failure first, or add %s to the URL to create an alert, "+
		"or add alias= to the URL to find alerts that others created", m.Type, jsmVerbs[action], remedy)
}

var jsmVerbs = map[string]string{"close": "close", "delete": "delete", "acknowledge": "acknowledge", "note": "add a note to"}

// alertID returns the ID of the alert that a request created. The service
// creates alerts after it answers the request.
func (j *jsm) alertID(ctx context.Context, c *notifier.Client, request string) (alert string, err error) {
	type status struct {
		AlertID string `json:"alertId"`
	}
	var answer struct {
		Data status `json:"data"`
		status
	}
	err = c.DoJSON(ctx, &notifier.Request{URL: j.base + "/requests" + notifier.Path(request), Header: j.headers()}, &answer)
	switch {
	case err != nil:
		return "", err
	case answer.Data.AlertID != "":
		return answer.Data.AlertID, nil
	case answer.AlertID != "":
		return answer.AlertID, nil
	}
	return "", errors.New("the service has not created the alert yet; add retry=3 to the URL to try again")
}

// actionRequest returns the request that applies action to an alert. kind is
// the type of the identifier alert: id or alias.
func (j *jsm) actionRequest(m *notifier.Message, action, kind, alert string) *notifier.Request {
	q := &notifier.Request{
		URL: j.base + notifier.Path(alert), Header: j.headers(),
		Query: url.Values{"identifierType": {kind}},
	}
	payload := map[string]string{"source": m.Identity.Description}
	if j.user != "" {
		payload["user"] = j.user
	}
	switch action {
	case "delete":
		q.Method = http.MethodDelete
		for name, value := range payload {
			q.Query.Set(name, value)
		}
		return q
	case "note":
		action = "notes"
	}
	payload["note"] = m.Body
	q.URL += "/" + action
	q.Body = notifier.JSON(payload)
	return q
}
