// Package outbox stores the messages that cannot be sent now, and delivers them later.
//
// # The way of a message
//
// Each message is one [dispatch.Delivery], wherever it comes from:
//
//   - requests and mails: Submit of the gateway; events, logs and digests of them: Post of it;
//     beats: [Outbox.Submit]. All of them become a submission (below) or, without a queue, go
//     to [dispatch.Dispatcher.Send].
//   - messages of the gateway itself that are stored together with records, which say that
//     they are told: to a fallback, about a device or an incident, and the digests of rules:
//     [Outbox.Entry]. The queue sends them.
//   - tests of destinations, which are one attempt, and what has to go out although it
//     cannot be stored: [dispatch.Dispatcher.Send].
//
// What the queue sends goes through [Outbox.Attempt] to the same dispatcher.
//
// # The states of a submission
//
//	accepted
//	   │ begin chooses the targets that are sent to at once: all that are not slow
//	   │
//	   ├─ nobody waits, or there is an idempotency key, a slow destination, an older message
//	   │  of the incident that is not final, or a rule, an inbox or a record that decides in
//	   │  the transaction:
//	   │     ├─ stored ─────────────── sending, and each result settles its job;
//	   │     │                         the queue sends what has to wait
//	   │     ├─ the queue is full, and the message escalates:
//	   │     │                         sending to all at once, never stored (sendUnstored)
//	   │     ├─ the store does not answer, and somebody waits:
//	   │     │                         sending, as below
//	   │     └─ another error ──────── refused; nothing was sent
//	   │
//	   └─ otherwise: sending
//	         ├─ all results in time, all final ─────────── recorded, answered
//	         ├─ all results in time, one may change ────── stored, answered
//	         ├─ all results in time, one refused for good ─ stored as given up, answered
//	         ├─ a newer message of the incident comes ──── stored (storeNow), and sending
//	         │                                             goes on
//	         └─ the time is over (giveUp) ──────────────── stored, answered, and each result
//	                                                       that comes later settles its job
package outbox
