// Package planned keeps messages that are sent later.
//
// A planned message is in the queue, with one job, which is held until the message is due. A record
// says when that is. The key and the tags are stored, but not the destinations: destinations, rules
// and silences are looked up when the message is due. It is then sent as a new message, to which
// its ID leads from then on:
//
//	planned ──due──▶ sent
//	   │ ├──due, nobody to send it to──▶ waits ten minutes for a new configuration ──▶ given up
//	   │ └──somebody wants it now──▶ due
//	   └──cancelled
//
// One transaction stores the new message and ends the planned one, so that it is sent once, even if
// a gateway is killed or several share the queue.
package planned
