package alerting

import (
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The errors of incidents and silences by which callers decide. An error of another type than
// [*message.Error] is a fault of the store.
var (
	// ErrNoSilence is returned for a silence that the key does not have, or not any more.
	ErrNoSilence = &message.Error{Kind: message.NotFound, Err: rules.ErrNoSilence}

	// ErrSilencesWithoutQueue is returned for the silences of any key if the gateway has no queue.
	ErrSilencesWithoutQueue = message.Errorf(message.Forbidden,
		"a silence keeps what it holds in the queue, and there is none; the operator can add queue to the global option notify")

	// ErrSilencesUnqueued is returned for the silences of a key that does not use the queue.
	ErrSilencesUnqueued = message.Errorf(message.Forbidden,
		"a silence keeps what it holds in the queue, which this key does not use; the operator can remove its queue off")

	// ErrNoIncident is returned for a public ID that no incident has: it is malformed, the
	// incident is forgotten, or it has opened again with another ID.
	ErrNoIncident = message.Errorf(message.NotFound,
		"there is no such incident; it is forgotten some days after its last message, and when it opens again, the newest message about it "+
			"has another link")

	// ErrUnderWay is returned for an incident that cannot be forgotten now, because its
	// steps run, somebody takes care of it, or something about it waits to be sent.
	ErrUnderWay = message.Errorf(message.Conflict,
		"people are being told of this incident, or somebody takes care of it; resolve it first, and forget it then")

	// ErrNoIncidents is returned by front ends when the gateway has no queue, in which
	// incidents are kept.
	ErrNoIncidents = message.Errorf(message.NotFound,
		"there are no incidents, because there is no queue; add queue to the global option notify, and rules to a key")
)
