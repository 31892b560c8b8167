package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Untold returns the decision of a rule because of which nobody is told of the message of the
// response. It returns "" if somebody is told, or will be.
func (r *Response) Untold() string {
	told := func(x notifier.Result) bool { return x.Status != notifier.Skipped || x.Rule == "" }
	if len(r.Results) == 0 || slices.ContainsFunc(r.Results, told) {
		return ""
	}
	return message.RuleText(r.Results[0].Rule, r.Results[0].By, time.Time{})
}

// SetQueued makes r the response for a message that the queue knows, whose address is
// location. If a delivery is queued and the client prefers not to wait, the status is 202.
func (r *Response) SetQueued(id, location string, p Preference) {
	r.ID, r.location = id, location
	r.queued = slices.ContainsFunc(r.Results, func(x notifier.Result) bool { return x.Status == message.StatusQueued })
	if !r.queued {
		return
	}
	if p.Async && r.Status == http.StatusOK {
		r.Status = http.StatusAccepted
		r.applied = p.applied()
	}
}

// SetAsked makes r the response for a message that asks, whose address is location: the client
// hears of the answer there.
func (r *Response) SetAsked(id, location string) {
	r.ID, r.Status, r.location = id, http.StatusAccepted, location
}

// MessageResponse returns the response to a request for a message: its JSON is m, and its text has a
// line for each delivery.
func MessageResponse(m *message.QueuedMessage) *Response {
	return &Response{Status: http.StatusOK, message: m, Records: m.Records()}
}
