// Package gateway assembles what takes messages with a configuration. [Gateway] is what the
// packages above use, and [Rooms] is an open queue with all that keeps records in it: package
// outbox delivers, and alerting, device, heartbeat and inbox each look after records of their
// own. Several configurations share the rooms while one replaces another.
//
// Nothing below this folder imports Caddy. What the gateway needs of a server is handed in as
// values: a storage, a logger, functions that emit events and find tracers, and what is known
// of a request.
package gateway
