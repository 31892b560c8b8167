// Package event has the names of the events that the gateway emits, and says
// what data they have.
package event
