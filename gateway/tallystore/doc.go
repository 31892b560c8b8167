// Package tallystore keeps what package tally counts in the queue, so that a restart does not
// forget it, and reads what other gateways have counted.
//
// Each gateway has a record of each half hour, which nobody else writes. It is written at most
// every 30 seconds, and only if something has changed; a gateway that is killed loses what it
// has counted since. Reading adds the records up. A record is removed after 24 hours.
package tallystore
