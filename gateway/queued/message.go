package queued

import (
	"errors"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Message returns a stored message as clients see it.
func Message(e *queue.Entry) *message.QueuedMessage {
	m := &message.QueuedMessage{ID: e.Message.ID.String(), Created: e.Message.Created, Results: make([]message.QueuedResult, len(e.Jobs))}
	for i := range e.Jobs {
		m.Results[i] = JobResult(&e.Jobs[i])
	}
	var s Summary
	if s.Decode(e.Message.Summary) == nil {
		m.Incident = s.Incident
	}
	chains := chainsOf(e)
	chains.setOptional(e.Jobs, m.Results)
	ignoreDevices(m.Results)
	m.SetState()
	return m
}

// Results returns the results of a stored message, as in the response to its request.
func Results(m *message.QueuedMessage) []notifier.Result {
	out := make([]notifier.Result, len(m.Results))
	for i, r := range m.Results {
		out[i] = notifier.Result{
			Service: r.Service, Destination: r.Destination, Tags: r.Tags, Status: r.Status, Optional: r.Optional, Rule: r.Rule, By: r.By,
			Attempts: r.Attempts, Elapsed: time.Duration(r.ElapsedMS) * time.Millisecond,
		}
		if r.Until != nil {
			out[i].Until = *r.Until
		} else if r.Next != nil {
			out[i].Until, out[i].Step = *r.Next, r.Step
		}
		if r.Error != nil {
			out[i].Err = errors.New(*r.Error)
		}
	}
	return out
}
