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

// follow does something to the alerts that this URL has raised about the same
// subject. Where there are none, there is nothing to do.
func (j *jsm) follow(ctx context.Context, c *notifier.Client, m *notifier.Message, action string) error {
	subject := j.subject(m)
	requests := j.remembered(subject)
	if len(requests) == 0 {
		c.Warn("no alert about the same subject was raised before, so there is none to %s", action)
		return nil
	}
	if j.alias != "" {
		requests = requests[:1] // alerts of one alias are one alert
	}
	err := c.Each(ctx, requests, func(ctx context.Context, request string) error {
		kind, alert := "alias", j.alias
		if alert == "" {
			var err error
			if kind, alert, err = j.find(ctx, c, request); err != nil {
				return err
			}
		}
		_, err := c.Do(ctx, j.step(m, action, kind, alert))
		return err
	})
	if err == nil && action == "delete" {
		j.forget(subject)
	}
	return err
}

// find is the ID of the alert that a request has raised, since alerts are
// raised only after the request has been answered.
func (j *jsm) find(ctx context.Context, c *notifier.Client, request string) (kind, alert string, err error) {
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
		return "", "", err
	case answer.Data.AlertID != "":
		return "id", answer.Data.AlertID, nil
	case answer.AlertID != "":
		return "id", answer.AlertID, nil
	}
	return "", "", errors.New("the service has not raised the alert yet; the parameter retry has the gateway try again")
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
