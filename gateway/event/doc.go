// Package event has the names and the data of the events that the gateway emits.
package event
