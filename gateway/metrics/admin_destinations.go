package metrics

// DestinationState is what the last attempts tell about a destination.
type DestinationState string

// The states of destinations, the worst first.
const (
	StateDown    DestinationState = "down"    // at least three attempts in a row have failed
	StateFailing DestinationState = "failing" // the last attempt has failed
	StateUnknown DestinationState = "unknown" // there was no attempt that tells
	StateKnown   DestinationState = "known"   // the last attempt succeeded
)
