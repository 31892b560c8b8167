// Package device has the devices of keys: phones and browsers that have subscribed to one with Web
// Push. A [List] has the devices of one key, an [Invitation] lets a device subscribe, and a
// [Receipt] and a [State] say what is known of it; these types know no request, no store and no
// clock. A [Registry] keeps them in the queue, and [KeyDevices] makes them destinations of the key.
package device
