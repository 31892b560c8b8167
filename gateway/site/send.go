package site

// The sources of messages.
const (
	SourceHTTP = "http" // a client of the HTTP API
	SourceTest = "test" // a test through the admin API or a page

	SourceEvent    = "event"     // an event of Caddy or of a plugin, or another one of this module
	SourceOwnEvent = "own_event" // an event of this module about a message, a destination or an incident
	SourceLog      = "log"       // entries of Caddy's log
	SourceFallback = "fallback"  // a delivery that the queue has given up
	SourceDigest   = "digest"    // several messages that a rule has held
	SourceSMTP     = "smtp"      // a mail
	SourceExpect   = "expect"    // a beat that is late, has failed, or is back

	SourceDevice     = "device"     // a device that has subscribed, is gone, or does not answer
	SourceEscalation = "escalation" // an incident that is still open, or that somebody has resolved on its page
)
