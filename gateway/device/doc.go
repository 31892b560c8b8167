// Package device has the devices of keys: phones and browsers that have subscribed to one
// with Web Push. A [List] has those of a key, with their invitations, receipts and states as
// they are stored, and says what each may be; these know no request, no store and no clock.
// A [Registry] keeps them in the queue, and [KeyDevices] makes them destinations of the key.
package device
