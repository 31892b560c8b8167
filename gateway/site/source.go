package site

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// CheckSource returns an error if the key does not accept messages of the source.
func (k *Key) CheckSource(name string) error {
	if len(k.Accept) == 0 || slices.Contains(k.Accept, name) {
		return nil
	}
	if name == SourceDirect {
		return errNotDirect
	}
	return errNotAccepted
}

// Errors for the client.
var (
	ErrNoKey       = message.Errorf(message.NotFound, "there is no such key")
	errNotAccepted = message.Errorf(message.Forbidden, "the key does not accept messages from this source; add the source to accept of the key")
	errNotDirect   = message.Errorf(message.Forbidden, "the key accepts messages from its sources only; post to /notify/{KEY}/{SOURCE}, or add direct to accept of the key")
)

// IsSourceName reports whether name has the form of the name of a source: 1 to 64 letters,
// digits, _ and -.
func IsSourceName(name string) bool { return IsKeyName(name) && len(name) <= 64 }

// SourceDirect in accept means POST /notify/{KEY}.
const SourceDirect = "direct"

// SourceRuler is the source of alerts that rulers, such as Prometheus, post to
// /notify/{KEY}/prometheus.
const SourceRuler = "prometheus"

// The sources of messages.
const (
	SourceHTTP = "http" // a client of the HTTP API
	SourceTest = "test" // a test through the admin API or a page

	SourceEvent    = "event"     // an event of Caddy or of a plugin, or an event of this module that is not a SourceOwnEvent
	SourceOwnEvent = "own_event" // an event of this module about a message, a destination or an incident
	SourceLog      = "log"       // entries of Caddy's log
	SourceFallback = "fallback"  // a delivery that the queue has given up
	SourceDigest   = "digest"    // several messages that a rule has held back
	SourceSMTP     = "smtp"      // a mail
	SourceExpect   = "expect"    // a beat that is late, has failed, or is back

	SourceDevice     = "device"     // a device that has subscribed, is gone, or does not answer
	SourceAsk        = "ask"        // the outcome of a question, for those who were asked
	SourceCallback   = "callback"   // the outcome of a question, for the client that asked
	SourceEscalation = "escalation" // an incident that is still open, or that somebody has resolved on its page
	SourceSilence    = "silence"    // a silence that has begun or ended
)
