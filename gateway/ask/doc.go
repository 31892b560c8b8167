// Package ask keeps the questions of messages. A message may ask, with options or for a text.
// Each destination gets an address of its own, on which a person answers; the client that has
// asked never sees one. It learns the outcome from the message, or is called back.
//
// A question is one record in the queue. The link of a destination names it, with a code that
// the secret of the record makes of the hash of the destination, so that links need no
// records and tell which destination an answer came through. An answer, the end of the
// steps of an escalation, and what else follows are one change of records: the answer is
// stored before anybody is told.
package ask
