// Package queued has the stored forms of what the queue keeps of a message and its
// deliveries. The queue sees only bytes, in these fields:
//
//	queue.Message.Body      Text
//	queue.Message.Summary   Summary
//	queue.Job.State         State
//	queue.Job.Result        a result, and its tries
//	queue.Job.Ruled         Ruled
//	queue.Job.Note          a note
//
// The store encrypts them. They are encoded as package wire does it: fields may be added,
// which an older version of the program ignores. The number of a field never changes, so
// that each version reads what the ones before it have stored.
package queued
