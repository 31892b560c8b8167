// Package planned keeps messages that are sent later.
//
// A planned message is in the queue, with one job, which is held until it is due. A record
// says when that is. The key and the tags are stored, not the destinations: those, the rules
// and the silences are those of the time when it is due. It is sent then as a message of its
// own, to which its ID leads from then on:
//
//	planned ──due──▶ sent
//	   │ ├──due, nobody to send it to──▶ waits ten minutes for a new configuration ──▶ given up
//	   │ └──somebody wants it now──▶ due
//	   └──cancelled
//
// The transaction that stores what is sent ends what was planned, so that it is sent once,
// also if a gateway is killed, and if several share the queue.
package planned
