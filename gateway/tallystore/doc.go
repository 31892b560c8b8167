// Package tallystore stores the counts of package tally in the queue, so that they survive a
// restart, and reads the counts of other gateways.
//
// Each gateway has a record of each half hour, which nobody else writes. It is written at most
// every 30 seconds, and only after a change; a gateway that is killed loses the counts since the
// last write. Reading adds the records up. A record is removed after 24 hours.
package tallystore
