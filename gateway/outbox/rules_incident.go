package outbox

// A key with rules has a record of each of its incidents, and one that maps the public ID
// of an incident to the name of the first.
const (
	KindIncident   = 'i'
	KindIncidentID = 'n'
)
