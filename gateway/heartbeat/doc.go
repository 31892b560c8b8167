// Package heartbeat watches the beats that keys expect, and calls a watchdog as long as the
// gateway works.
//
// A beat is a request that a job sends each time it runs. A key expects it every so often,
// with a grace:
//
//	on time ──due──▶ in grace ──grace ends──▶ late ──a beat──▶ on time
//	   └──── a beat of the type failure ────▶ failed ──a beat──▶ on time
//
// A late beat, a failed one and the first good one afterwards are told by messages of one incident.
// A beat is a record in the queue, which is due when the beat is late, so that one of the gateways
// that share a queue tells it. Time in which no gateway ran does not count: the record of
// [rules.Uptime] says when a gateway was last seen.
//
// The watchdog is an address that one of the gateways calls again and again, unless the store
// cannot be written or a delivery has waited for too long. The service at that address notices when
// the calls stop.
package heartbeat
