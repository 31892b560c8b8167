// Package ask keeps the questions of messages. A message may ask, with options or for a text. Each
// destination gets its own address, where a person answers. The client never sees these addresses;
// it reads the outcome by the ID of the message, or is called back.
//
// A question is one record in the queue. The link of a destination has the ID of the question and a
// code, a keyed hash of the destination with a secret in the record. So links need no records, and
// tell which destination an answer came through. One transaction stores an answer and ends the
// steps of an escalation, before anybody is told.
package ask
