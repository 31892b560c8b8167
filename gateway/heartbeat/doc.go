// Package heartbeat watches the beats that keys expect, and calls a watchdog as long as the
// gateway works.
//
// A beat is a request that a job sends each time it runs. A key expects it every so often,
// with a grace:
//
//	on time ──due──▶ in grace ──grace ends──▶ late ──a beat──▶ on time
//	   └──── a beat of the type failure ────▶ failed ──a beat──▶ on time
//
// Going late, failing and coming back are told by messages of one incident. What is known of
// a beat is a record in the queue, which is due when the beat is late, so that one of the
// gateways that share a queue tells it. Time in which no gateway ran does not count: the
// record of [rules.Uptime] says when one was last seen.
//
// The watchdog is an address that one of the gateways calls again and again, unless the
// store cannot be written or a delivery has waited for too long. Whoever is behind it
// notices when the calls stop.
package heartbeat
