package outbox

// The silences of a key are one record. Another record changes with each of them, so that
// gateways that share a store see in one read that there is something new.
const (
	KindSilences        = 'q'
	KindSilencesVersion = 'v'
)
