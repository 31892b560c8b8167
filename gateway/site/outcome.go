package site

// The outcomes of messages in metrics, history and traces. Those of deliveries are the
// statuses of package notifier.
const (
	OutcomeDelivered  = "delivered"  // every required destination has the message
	OutcomeFailed     = "failed"     // a required destination does not have it
	OutcomeQueued     = "queued"     // the queue delivers it to a destination later
	OutcomeRepeated   = "repeated"   // it opens an alert that is open already, and nobody is told
	OutcomeRefused    = "refused"    // the request was wrong, and nothing was sent
	OutcomeOverloaded = "overloaded" // too many were under way, and the request was not read
	OutcomeError      = "error"      // a fault of the gateway
)

// KeyID identifies a key by the ID of its site and its name.
type KeyID struct{ Site, Key string }
