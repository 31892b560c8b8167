// Package matrix sends messages to Matrix rooms, as a user of a homeserver or
// through a webhook bridge.
package matrix
