// Package dispatch sends one message to its destinations now: a [Delivery] is a message with
// all that sending it needs, and a [Dispatcher] sends it and records the outcome in metrics,
// the history, traces and events. It knows no queue.
package dispatch
