// Package gateway assembles the parts that take and deliver messages. [Gateway] is a configuration
// in use; the packages above call it. [Rooms] is an open queue with the packages that keep records
// in it: outbox delivers, and alerting, device, heartbeat, inbox and others each have their own
// records. Configurations share the rooms while one replaces another.
//
// Nothing below this folder imports Caddy. A server hands in values: a storage, a logger, functions
// that emit events and find tracers, and the properties of a request.
package gateway
