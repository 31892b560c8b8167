package queued

import (
	"cmp"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
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
