// Package queued has the stored forms of a message and its deliveries. The queue sees only bytes,
// in these fields:
//
//	queue.Message.Body      Text
//	queue.Message.Summary   Summary
//	queue.Job.State         State
//	queue.Job.Result        a result, and its tries
//	queue.Job.Ruled         Ruled
//	queue.Job.Note          a note
//
// The store encrypts them. They are encoded as in package wire: fields may be added, which an older
// version of the program ignores. The number of a field never changes, so that each version can
// read what earlier versions stored.
package queued
