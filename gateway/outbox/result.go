package outbox

import (
	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// A message to a key with rules is stored before it is sent. In the same transaction,
// the rules decide about each of its jobs. Their records begin with a kind.
const (
	KindLane    = 'l' // what is held for a destination of a key
	KindSubject = 's' // what a destination knows of an incident or a text
)

// HoldRule returns how results name why a message is held.
func HoldRule(h rules.Hold) notifier.Rule {
	switch h {
	case rules.ByDigest:
		return notifier.RuleDigested
	case rules.BySilence:
		return notifier.RuleSilenced
	}
	return notifier.RuleHeld
}

// ruled reports whether a rule has decided that a job is not sent now, and sets the
// result.
func ruled(r *notifier.Result, j *queue.Job) bool {
	if j.Rule == "" {
		return false
	}
	switch j.Status {
	case queue.Held:
		r.Status, r.Rule, r.Until = api.StatusQueued, notifier.Rule(j.Rule), j.Due
		if r.Rule == notifier.RuleEscalating {
			r.Step = queued.Step(j)
		}
	case queue.Superseded:
		r.Status, r.Rule, r.Err = notifier.Skipped, notifier.Rule(j.Rule), nil
		if j.By.Message != (uuid.UUID{}) {
			r.By = j.By.Message.String()
		}
	default:
		return false
	}
	return true
}
