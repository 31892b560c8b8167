// Package queue delivers messages durably: what it has accepted is delivered or
// reported, across crashes, power cuts, reloads and, with a shared store,
// machines. A message is delivered at least once. Order is not kept.
//
// The package knows nothing of notifications. A [Message] is one request; it has
// a [Job] for each destination. What they contain is opaque: the caller's
// function Deliver reads it. A [Store] keeps both. Packages bolt and postgres are
// stores; package queuetest tests any other.
//
// # Life of a message
//
// A caller that wants an answer at once sends the message itself, and tells the
// queue afterwards:
//
//   - All results are final: [Queue.Record] keeps them for who asks for the
//     message by its ID. It stores them within a second, together with those of
//     other messages, so that they cost no commit.
//   - Some are not final: [Queue.Accept] stores the message before the client gets
//     its answer. A job that has failed and can be tried again is Queued. A job
//     that the caller is still sending is Sending; the caller ends it with
//     [Queue.Settle], and if it never does because the process ends, the job is
//     sent again. A job that is final has its result.
//
// A caller that need not wait calls Accept with all jobs Queued. A caller with an
// idempotency key calls Accept with all jobs Sending before it sends anything: the
// store decides who is first, among all processes that share it.
//
// # Scheduling
//
// At most four deliveries to one destination run at once, and destinations take
// turns, so that a slow or dead one does not delay others. A job that fails is tried
// again after 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, and then each hour, ±20 %, and
// not before what the destination asks for with Retry-After. It is dead when it
// fails for good, or when MaxAge has passed since the message came in. A dead job
// keeps its text until Keep is over, and can be retried or dropped.
//
// # Configuration changes
//
// A queue outlives its configuration: [Queue.Configure] replaces the options for
// deliveries that begin afterwards. [Queue.Close] lets deliveries that have begun
// finish; what has not begun stays in the store.
package queue
