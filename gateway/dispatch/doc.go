// Package dispatch sends one message to its destinations now, and records
// the outcome in metrics, the history, traces and events.
package dispatch
