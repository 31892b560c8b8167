// Package metrics has the Prometheus collectors of the gateway.
package metrics
