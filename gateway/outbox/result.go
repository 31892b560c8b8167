package outbox

import (
	"github.com/caddy-notify/caddy-notify/notifier"
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
