package site

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// DestinationName returns the name under which a destination is stored. With limits, the
// destination is a client's and has a name of its own, even if the operator uses the same URL:
// messages of clients do not delay the operator's.
func DestinationName(t notifier.Target, limits *notifier.Limits) string {
	if limits != nil {
		return ofClients + t.Hash()
	}
	return t.Hash()
}

// ofClients is the prefix of the name of a destination with limits.
const ofClients = "client "

// DestinationHash returns the hash of the destination in a [DestinationName].
func DestinationHash(name string) string { return strings.TrimPrefix(name, ofClients) }

// IsDevice reports whether shown is the text that a device is shown as.
func IsDevice(shown string) bool { return strings.HasPrefix(shown, DeviceScheme) }

// DeviceScheme is the prefix of the text that a device is shown as. No URL can have it.
const DeviceScheme = "device://"

// Place identifies a key in all sites and spaces. It stays the same when a saved key is moved to
// another name.
type Place struct {
	Home string // see [Key.Home]
	Key  string // see [Key.FirstName]
}

// String returns the place as a part of the names of stored records.
func (p Place) String() string { return p.Home + "\x00" + p.Key }
