// Package inbox has the messages that a key keeps for readers: how they are stored, where
// a reader goes on, what listeners are told, and the form in which ntfy's clients get
// them. It knows no request and no store.
package inbox
