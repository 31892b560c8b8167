package site

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// DestinationName returns the name under which a destination is stored, for messages with
// limits. A destination that a client decides is another one than that of the
// operator with the same URL, so that what clients send to it delays nothing of the
// operator's.
func DestinationName(t notifier.Target, limits *notifier.Limits) string {
	if limits != nil {
		return ofClients + t.Hash()
	}
	return t.Hash()
}

// ofClients begins the name of a destination that has limits.
const ofClients = "client "

// DestinationHash returns the hash of the destination that [DestinationName] has named.
func DestinationHash(name string) string { return strings.TrimPrefix(name, ofClients) }

// IsDevice reports whether a destination that is shown as this text is a device.
func IsDevice(shown string) bool { return strings.HasPrefix(shown, DeviceScheme) }

// DeviceScheme begins what a device is shown as. No URL can have it.
const DeviceScheme = "device://"

// Place names a key among those of all sites and spaces. It stays the same when a saved key is
// moved to another name.
type Place struct {
	Home string // what [Key.Home] returns
	Key  string // what [Key.FirstName] returns
}

// String returns the place as a part of the names of stored records.
func (p Place) String() string { return p.Home + "\x00" + p.Key }
