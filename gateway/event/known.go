package event

import "slices"

// The gateway emits one event for each message that was sent, from any source, and
// one for each delivery that the queue has made or given up later. The origin of the
// event is the app notify. Its data are
//
//	key           the name of the key; "" for a message without one
//	source        the source of the message: http, smtp, test, event, log, fallback, digest, expect, device, escalation, ask or callback
//	incident      the name of what the message is about; "" for a message without one
//	services      the services that have the message (notify_delivered) or do not (notify_failed)
//	destinations  their URLs with the secrets masked, in the same order
//	errors        the errors, in the same order (notify_failed)
//	error         the errors as one text (notify_failed)
//	delivered     how many destinations have the message
//	failed        how many do not
//
// Lists have at most 20 items. The data contain no secret, and no text of the
// message unless the error of a destination repeats it.
const (
	Delivered = "notify_delivered"
	Failed    = "notify_failed"

	// Dead is emitted when the queue gives up a delivery. Its data are the id of the message, its
	// key, source and incident, the service, the destination, the number of attempts, and the
	// error.
	Dead = "notify_dead"
)

// The events of a destination of the operator's that is down, which means that
// several deliveries to it have failed in a row, and of one that is back. Their
// data are
//
//	key          the key of the message that failed; "" for default_urls
//	service      the service
//	destination  the URL with its secrets masked
//	since        when the first of these deliveries failed
//	error        the error of the last one
//	waiting      how many deliveries wait for the destination
//	duration     how long it was down (notify_up)
const (
	Down = "notify_down"
	Up   = "notify_up"
)

// The events of a beat that a key expects: it is late, has failed or its run takes too
// long, and it has come after that. Their data are
//
//	key    the name of the key
//	beat   the name of the beat
//	state  late, failed or too_long; "" if it is back
//	last   when the last one came; "" for never
//	every  how often it is expected; "" if it comes by a calendar
//	cron   the fields and the zone of the calendar; "" for none
//	ran    how long the last run took; "" if that is not known
//	exit   the exit code of the last one; "" for 0 or none
const (
	BeatLate = "notify_beat_late"
	BeatBack = "notify_beat_back"
)

// ConfigChanged is the event for each change of a saved configuration. Its
// data are
//
//	key           the name of the key
//	space         the name of its space, or default
//	change        saved, deleted, moved, token_added or tokens_removed
//	destinations  how many it has now
//	user          who made the change; "" if Caddy's authentication has found nobody
const ConfigChanged = "notify_config_changed"

// Answered is the event for each question that is decided. Its data are
//
//	key      the name of the key
//	id       the ID of the message
//	state    answered, expired or cancelled
//	by       who has answered; "" if nobody is known
//	through  the destination whose link was used
//
// They contain neither the question nor the answer.
const Answered = "notify_answered"

// Silence is the event for each silence that is made, begins later or ends. Its data are
//
//	key       the name of the key
//	silence   the ID of the silence
//	change    made, extended, begun, ended, or cancelled before it has begun; one that begins when it is
//	          made is only made, and one of the configuration is not
//	from      when it begins
//	until     when it ends, or would have ended
//	tag       the tag of its destinations; "" for none
//	reason    why it was made
//	who       the user who made it, or ended it before its time; "" if nobody
//	messages  how many messages it has kept from a destination
const Silence = "notify_silence"

// Device is the event for each change of a device of a key. Its data are
//
//	change  added, removed, gone (its browser has ended the subscription), silent (it does
//	        not answer) or refused (its push service takes no messages for it)
//	key     the name of the key
//	device  the name of the device
//	by      the user who made the change; "" if nobody is known
const Device = "notify_device"

// Incident is the event for each change of an incident of a key that has rules. Its data
// are
//
//	change    opened, escalated, acknowledged, resolved or exhausted
//	key       the name of the key
//	source    the source of its messages
//	incident  its name
//	type      the type of its last message
//	round     the round of the escalation, from 1; 0 without one
//	step      the number of the step that was begun last
//	by        who made the change on the incident's page; "" otherwise
const Incident = "notify_incident"

// The changes of an incident.
const (
	IncidentOpened       = "opened"
	IncidentEscalated    = "escalated"    // another step has begun
	IncidentAcknowledged = "acknowledged" // somebody takes care of it
	IncidentResolved     = "resolved"
	IncidentExhausted    = "exhausted" // all rounds have ended without an acknowledgement
)

// AboutMessage reports whether an event of the gateway is about a message and has its
// key.
func AboutMessage(name string) bool {
	return slices.Contains([]string{Failed, Delivered, Dead}, name)
}

// CausesNone reports whether a message about an event emits no further event, because that would
// never end: the event is about a message, a destination or an incident.
func CausesNone(name string) bool {
	return AboutMessage(name) || slices.Contains([]string{Down, Up, Incident}, name)
}
