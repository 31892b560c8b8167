// Package inbox has the messages that a key keeps for readers: how they are stored in a
// queue, where a reader goes on, what listeners are told, and the form in which ntfy's clients
// get them. It knows no request, no key and no configuration: a [Store] has the inboxes by
// name, and a [Reader] reads one of them.
package inbox
