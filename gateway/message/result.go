package message

import (
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Result is the outcome of one delivery, as JSON responses have it.
type Result struct {
	Service     string          `json:"service"`
	Destination string          `json:"destination"`    // the URL with its secrets masked
	Name        string          `json:"name,omitempty"` // what people call the destination, with its tags
	Tags        []string        `json:"tags"`
	Status      notifier.Status `json:"status"`
	Attempts    int             `json:"attempts"`
	ElapsedMS   int64           `json:"elapsed_ms"`
	Error       *string         `json:"error"`              // null for success
	Optional    bool            `json:"optional,omitempty"` // a failure does not count

	// Rule says why nothing was sent, or why it is sent later. By is the ID of the message sent
	// instead, and Until the time of sending.
	Rule  notifier.Rule `json:"rule,omitempty"`
	By    string        `json:"by,omitempty"`
	Until *time.Time    `json:"until,omitempty"`

	// Step is the number of the step of which the delivery is a part. Next is when the step begins,
	// unless the incident is acknowledged before.
	Step int        `json:"step,omitempty"`
	Next *time.Time `json:"next,omitempty"`
}

// NewResult returns the JSON form of a result.
func NewResult(r notifier.Result) Result {
	out := Result{
		Service: r.Service, Destination: r.Destination, Name: NameOf(r), Tags: NotNil(r.Tags), Status: r.Status,
		Attempts: r.Attempts, ElapsedMS: r.Elapsed.Milliseconds(), Optional: r.Optional, Rule: r.Rule, By: r.By,
	}
	if !r.Until.IsZero() {
		until := r.Until // &r.Until would move all of r to the heap
		if r.Rule == notifier.RuleEscalating {
			out.Step, out.Next = r.Step, &until
		} else {
			out.Until = &until
		}
	}
	if r.Err != nil {
		text := r.Err.Error()
		out.Error = &text
	}
	return out
}

// NameOf returns the name of the destination of a result, with its tags.
func NameOf(r notifier.Result) string {
	name := r.Name
	if name == "" {
		name = notifier.NameOf(r.Service, r.Destination)
	}
	return notifier.NameWithTags(name, r.Tags)
}

// SetName sets the name of the destination.
func (r *Result) SetName() {
	r.Name = notifier.NameWithTags(notifier.NameOf(r.Service, r.Destination), r.Tags)
}

// NotNil returns tags, or an empty slice for nil, so that JSON has an array.
func NotNil(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}

// TimeLayout is the layout of times in responses, as in Apprise API.
const TimeLayout = "2006-01-02 15:04:05,000"

// FormatTime formats t with TimeLayout, in local time.
func FormatTime(t time.Time) string { return t.Local().Format(TimeLayout) }
