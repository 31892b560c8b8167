// Package device has the devices of a key: phones and browsers that have subscribed to it
// with Web Push. It has what is stored of them, their invitations and receipts, what each
// may be, and what follows if a device confirms a message, does not answer, or is gone. It
// knows no request, no store and no clock: callers read and write the records, and say what
// time it is.
package device
