// Package queue delivers messages durably: each message that it has accepted is
// delivered or its failure is reported, even after a crash, a power cut or a
// reload. With a shared store, the other machines deliver what a lost one has
// accepted. A message is delivered at least once. Order is not kept.
//
// The package knows nothing of notifications. A [Message] is one request; it
// has a [Job] for each destination. Their content is opaque to the queue; the
// caller's function Deliver reads it. A [Store] keeps messages and jobs.
// Packages bolt and postgres implement it.
//
// # Life of a message
//
// A caller that wants an answer at once sends the message itself, and tells the
// queue afterwards:
//
//   - If all results are final, it calls [Queue.Record], so that clients can read
//     the results by the ID of the message. They are stored within a second;
//     the results of several messages share one commit.
//   - If some are not final, it calls [Queue.Accept], which stores the message
//     before the client gets its answer. A job that has failed and can be tried again is Queued. A job
//     that the caller is still sending is Sending; the caller ends it with
//     [Queue.Settle], and if it never does because the process ends, the job is
//     sent again. A job that is final has its result.
//
// A caller that does not wait for results calls Accept with all jobs Queued. A
// caller with an idempotency key calls Accept with all jobs Sending before it
// sends anything. Among all processes that share the store, only the first call
// with a key succeeds.
//
// # Scheduling
//
// [Slots] says how many deliveries run at once and to which destinations. A
// slow or dead destination does not delay others: a delivery to one whose last
// attempt succeeded begins at once if no other to it is under way, before all others, and so
// does the first delivery to one.
//
// A store can be far away. [Prefetch] keeps as many jobs of a quick destination as it takes
// meanwhile, and their outcomes are stored while the next are sent. At most 128 jobs of a
// destination are claimed at once: so many can be sent again after a crash.
//
// A job that fails is tried again after 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, and
// then each hour, ±20 %, and not earlier than the Retry-After of the destination
// allows, up to an hour. The last attempt is made when MaxAge has passed since
// the message came in. If it fails, or an earlier one fails for good, the job is
// dead. A dead job keeps its text until Keep is over, and can be retried or
// dropped.
//
// A success wakes its destination: the next eight jobs that wait for it are due
// at once. While a destination is down, one attempt at a time is made. If it
// fails, the jobs that were due before it began wait until the next turn of the
// destination: as long again as it has been down, 5 s to 1 h ±20 %, and at least as long as
// it has asked for. Then one of them is tried, for all. Package postgres stores the turn with
// the destination, and package bolt not: after a crash these jobs are due earlier.
//
// [Health] is the state of a destination. The queue keeps it from the outcomes of
// attempts, and the store keeps which destinations are known or down.
//
// # Records
//
// The caller stores records beside the messages. Each is due at a time. Due records take turns
// ([Options.Turn]): one record of a turn at a time, several turns at once, so that a turn with very
// many records delays no other. A record that the caller does not know stays unchanged.
//
// # Stores
//
// A program can have a [Store] of its own. Its methods say what they promise, and package queuetest tests
// that. In addition:
//
//   - A store can read and index all fields of messages, jobs and records, except for those that are called
//     opaque. It keeps them as they are, unless their comment says otherwise.
//   - [Store.Hash] of [Job.Destination] and [Job.Host] is what the [Candidate] of a job has, and what [Slots],
//     [Health] and [Wake] mean by a destination.
//   - A transaction calls [Update.Run] when nobody else can change the records, and stores what the returned [Tx] has:
//     [Tx.Changed] for each name, [Tx.Owned], and [Tx.Jobs], which it applies to the stored jobs. If Decide
//     fails, nothing is stored.
//   - A job that was Sending when its handle was closed or its process ended is Queued again.
//
// Package sealed keeps texts from a store: above it, destinations, hosts, incidents and idempotency keys
// are keyed hashes, and everything opaque, files and records are sealed bytes. [Job.Result] then has the
// whole job, and [Message.Summary] what belongs to the message, so that both are never empty. The gateway
// does so with each store of another module.
//
// # Clocks
//
// Gateways that share a store go by its clock ([Queue.Now]). Without a clock of the store, they go by
// the clock of the machine, which may be set. A job that was written when the clock was ahead is due at
// once, and so is such a record ([Options.Ahead]). A job whose last attempt is the first one
// after a start, a jump of the clock or a pause of the process gets one more.
//
// # Configuration changes
//
// A queue outlives its configuration: [Queue.Configure] replaces the options
// for deliveries that begin afterwards. [Queue.Close] waits for deliveries in
// progress; jobs that have not begun stay in the store.
package queue
