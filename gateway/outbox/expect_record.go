package outbox

// What is known of a beat is a record that is due when the beat is late, so that one of
// the gateways that share a queue tells it. A further record tells when one of them last
// ran; each change of a beat reads it.
const (
	KindBeat   = 'B'
	KindUptime = 'U'
)
