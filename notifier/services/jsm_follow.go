package services

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// subject is what tells which alerts a message belongs to.
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

// follow does something to the alert of the URL's alias or else to those that
// this URL has raised about the same subject. Where there are none, there is
// nothing to do.
func (j *jsm) follow(ctx context.Context, c *notifier.Client, m *notifier.Message, action string) error {
	if j.alias != "" {
		_, err := c.Do(ctx, j.step(m, action, "alias", j.alias))
		return err
	}
	subject := j.subject(m)
	requests := j.remembered(subject)
	if len(requests) == 0 {
		j.skip(c, m, action)
		return nil
	}
	err := c.Steps.Each(ctx, requests, func(ctx context.Context, request string) error {
		alert, err := j.find(ctx, c, request)
		if err != nil {
			return err
		}
		_, err = c.Do(ctx, j.step(m, action, "id", alert))
		return err
	})
	if err == nil && action == "delete" {
		j.forget(subject)
	}
	return err
}

// skip says that a message reaches nobody, and what would change that.
func (j *jsm) skip(c *notifier.Client, m *notifier.Message, action string) {
	remedy := "action=new"
	if j.action == "map" {
		remedy = ":" + string(m.Type) + "=new"
	}
	c.Skip("nothing was sent: a message of type %s is to %s an alert about the same subject, and none is known; "+
		"raise one before by a message of type failure, or have this one raise it by %s, "+
		"or add alias= to the URL, which also finds alerts from before a restart", m.Type, jsmVerbs[action], remedy)
}

var jsmVerbs = map[string]string{"close": "close", "delete": "delete", "acknowledge": "acknowledge", "note": "add a note to"}

// find is the ID of the alert that a request has raised, since alerts are
// raised only after the request has been answered.
func (j *jsm) find(ctx context.Context, c *notifier.Client, request string) (alert string, err error) {
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
	return "", errors.New("the service has not raised the alert yet; the parameter retry has the gateway try again")
}

// step is the request that acts upon an alert.
func (j *jsm) step(m *notifier.Message, action, kind, alert string) *notifier.Request {
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
