// Package inbox has the messages that a key keeps for readers: how they are stored in a queue,
// where a reader goes on, and what listeners are told. A [Store] has the inboxes by name, and a
// [Reader] reads one of them; they know no request, no key and no configuration. A [Box] connects
// the inboxes with the keys of an outbox.
package inbox
