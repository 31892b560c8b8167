package services

import (
	"context"
	"errors"
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

func (j *jsm) remember(subject, request string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.requests == nil {
		j.requests = map[string][]string{}
	}
	if j.requests[subject] == nil {
		j.order = append(j.order, subject)
	}
	j.requests[subject] = append(j.requests[subject], request)
	if len(j.order) > jsmSubjects {
		delete(j.requests, j.order[0])
		j.order = j.order[1:]
	}
}

func (j *jsm) forget(subject string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.requests, subject)
	j.order = slices.DeleteFunc(j.order, func(s string) bool { return s == subject })
}

func (j *jsm) remembered(subject string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.requests[subject])
}

// act applies action to the alert with the URL's alias, or else to the alerts
// that this destination created for the same subject. If there are none, it
// skips the message.
func (j *jsm) act(ctx context.Context, c *notifier.Client, m *notifier.Message, action string) error {
	if j.alias != "" {
		_, err := c.Do(ctx, j.actionRequest(m, action, "alias", j.alias))
		return err
	}
	subject := j.subject(m)
	requests := j.remembered(subject)
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
		j.forget(subject)
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
		"or add alias= to the URL to find alerts from before a restart", m.Type, jsmVerbs[action], remedy)
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
