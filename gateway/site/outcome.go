package site

// The outcomes of messages in metrics, history and traces. Deliveries have the statuses of package
// notifier instead.
const (
	OutcomeDelivered  = "delivered"  // every required destination has the message
	OutcomeFailed     = "failed"     // a required destination does not have it
	OutcomeQueued     = "queued"     // the queue delivers it to a destination later
	OutcomeRepeated   = "repeated"   // it repeats an open alert, and nobody is told
	OutcomeRefused    = "refused"    // the request was wrong, and nothing was sent
	OutcomeOverloaded = "overloaded" // too many messages were under way, and the request was not read
	OutcomeError      = "error"      // a fault of the gateway
)

// KeyID identifies a key by the ID of its site and its name.
type KeyID struct{ Site, Key string }
