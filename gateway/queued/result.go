package queued

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// RoomForResult is the number of bytes that most results need.
const RoomForResult = 192

// resultFields names the fields of a result. The last ones belong to its tries.
func resultFields(r *message.Result, c *wire.Codec) {
	wire.Text(c, 1, &r.Service)
	wire.Text(c, 2, &r.Destination)
	wire.Texts(c, 3, &r.Tags)
	wire.Text(c, 4, &r.Status)
	wire.Number(c, 5, &r.Attempts)
	wire.Number(c, 6, &r.ElapsedMS)
	wire.TextOrNil(c, 7, &r.Error)
	wire.True(c, 8, &r.Optional)
	wire.Text(c, 9, &r.Rule)
	wire.Text(c, 10, &r.By)
}

// AppendResult appends the stored form of a result.
func AppendResult(b []byte, r notifier.Result) []byte {
	result := message.NewResult(r)
	return appendResult(b, &result)
}

func appendResult(b []byte, r *message.Result) []byte {
	r.ElapsedMS = max(r.ElapsedMS, 0)
	return wire.Append(b, r, resultFields)
}

// DecodeResult is the inverse of [AppendResult]. If b is damaged, it returns the part before the
// damage.
func DecodeResult(b []byte) message.Result {
	r := message.Result{Tags: []string{}}
	_ = wire.Decode(b, &r, resultFields)
	return r
}

// JobResult returns the result of a job as clients see it.
func JobResult(j *queue.Job) (r message.QueuedResult) {
	r.Result = DecodeResult(j.Result)
	r.SetName()
	switch j.Status {
	case queue.Queued, queue.Sending:
		r.Status, r.NextAttempt = message.StatusQueued, &j.Due
	case queue.Held:
		r.Status, r.Rule = message.StatusQueued, notifier.Rule(j.Rule)
		switch {
		case j.Rule == "" || j.Due.IsZero():
		case r.Rule == notifier.RuleEscalating:
			r.Next, r.Step = &j.Due, Step(j)
		default:
			r.Until = &j.Due
		}
	case queue.Superseded:
		r.Status, r.Rule, r.Error = notifier.Skipped, cmp.Or(notifier.Rule(j.Rule), notifier.RuleSuperseded), nil
		if j.By != (queue.JobID{}) {
			r.By = j.By.Message.String()
		}
	case queue.Delivered, queue.Failed:
		if j.By != (queue.JobID{}) {
			r.By = j.By.Message.String()
		}
	case queue.Cancelled:
		r.Status = message.StatusCancelled
	default:
		r.Status = notifier.Failed
		if r.Error == nil || j.Status == queue.Lost {
			r.Error = &j.Reason
		}
	}
	return r
}

// Try is an attempt of the queue, as the pages show it.
type Try struct {
	At    time.Time // when it ended
	Error string    // "" for a success
}

// The bounds of the stored attempts of a delivery.
const (
	maxTries    = 20
	maxTryError = 200 // bytes
)

// tries are the last attempts of a delivery, the oldest first. They are part of its stored result
// (see [resultFields]).
type tries []Try

func (t *tries) fields(c *wire.Codec) { wire.Records(c, 11, (*[]Try)(t), (*Try).fields) }

func (t *Try) fields(c *wire.Codec) {
	wire.Time(c, 1, &t.At)
	wire.Text(c, 2, &t.Error)
}

// AppendTry appends to a stored result the attempts in the stored result before, and the attempt
// with the result r. A success without an earlier failure needs no list.
func AppendTry(result, before []byte, r notifier.Result) []byte {
	all := tries(Tries(before))
	if r.Err == nil && len(all) == 0 {
		return result
	}
	t := Try{At: time.Now()}
	if r.Err != nil {
		t.Error = markup.TruncateBytes(r.Err.Error(), maxTryError)
	}
	all = append(all, t)
	all = all[max(len(all)-maxTries, 0):]
	return wire.Append(result, &all, (*tries).fields)
}

// Tries returns the last attempts of a stored result, the oldest first. If it is damaged, Tries
// returns the attempts before the damage.
func Tries(result []byte) []Try {
	var all tries
	_ = wire.Decode(result, &all, (*tries).fields)
	return all
}

// noteFields names the fields of a note, which describes a message for the message that reports it
// as missed.
func noteFields(m *notifier.MissedMessage, c *wire.Codec) {
	wire.Text(c, 1, &m.State)
	wire.Time(c, 2, &m.Time)
	wire.True(c, 3, &m.Unclear)
}

// Note returns the note of a message that arrived at t with a state of its incident. unclear means
// that its destination may have it.
func Note(state notifier.IncidentState, t time.Time, unclear bool) []byte {
	return wire.Append(nil, &notifier.MissedMessage{State: state, Time: t, Unclear: unclear}, noteFields)
}

// OpenFor returns how long the incident that a job resolves was open; 0 if unknown.
func OpenFor(j *queue.Job) time.Duration {
	r, _ := DecodeRuled(j.Ruled) // if it is damaged, the part before the damage
	return r.OpenFor
}

// Missed returns what a destination missed before a job.
func Missed(j *queue.Job) (m notifier.Missed) {
	m.Omitted = j.Missed.Omitted
	if r, err := DecodeRuled(j.Ruled); err == nil {
		m.Repeats, m.Since = r.Repeats, r.Since
	}
	for _, note := range j.Missed.Notes {
		var x notifier.MissedMessage
		_ = wire.Decode(note, &x, noteFields) // if it is damaged, the part before the damage
		m.Messages = append(m.Messages, x)
	}
	return m
}

// A device is somebody's phone or browser, and the operator does not run its push service. Its
// failure does not count while another destination has the message or will get it. Otherwise a
// single refused subscription would make each message to the key a failure, and senders would
// repeat it to all destinations.

// hasMessage reports whether a destination has the message or will get it.
func hasMessage(status notifier.Status) bool {
	return status == notifier.Delivered || status == message.StatusQueued
}

func isFailedDevice(destination string, status notifier.Status) bool {
	return status == notifier.Failed && strings.HasPrefix(destination, site.DeviceScheme)
}

// IgnoreDevices returns a report in which failures of devices are optional if another destination
// of r has the message: r itself if there are none.
func IgnoreDevices(r *notifier.Report) *notifier.Report {
	failed := func(r notifier.Result) bool { return isFailedDevice(r.Destination, r.Status) && !r.Optional }
	if !slices.ContainsFunc(r.Results, failed) ||
		!slices.ContainsFunc(r.Results, func(r notifier.Result) bool { return hasMessage(r.Status) }) {
		return r
	}
	r = &notifier.Report{Results: slices.Clone(r.Results), Records: slices.Clip(r.Records)}
	for i := range r.Results {
		if failed(r.Results[i]) {
			r.Results[i].Optional = true
			r.Records = append(r.Records, notifier.Record{
				Time: time.Now(), Level: notifier.LevelWarning, Text: "The failure of " + r.Results[i].Destination +
					" is ignored, because another destination has the message.",
			})
		}
	}
	return r
}

// ignoreDevices is like [IgnoreDevices] for the results of a stored message.
func ignoreDevices(results []message.QueuedResult) {
	if !slices.ContainsFunc(results, func(r message.QueuedResult) bool { return hasMessage(r.Status) }) {
		return
	}
	for i := range results {
		if r := &results[i]; isFailedDevice(r.Destination, r.Status) {
			r.Optional = true
		}
	}
}
