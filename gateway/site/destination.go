package site

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// DestinationOf returns what the queue knows a target by, in messages with these
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

// HashOfDestination returns the hash of the destination with a name of DestinationOf.
func DestinationHash(name string) string { return strings.TrimPrefix(name, ofClients) }

// IsDevice reports whether what is shown of a destination is that of a device.
func IsDevice(shown string) bool { return strings.HasPrefix(shown, DeviceScheme) }

// Scheme begins what a device is shown as. No URL can have it.
const DeviceScheme = "device://"

// Place names a key among those of all sites and spaces.
type Place struct {
	Home string // where the key is defined
	Key  string // its name
}

// String returns the place as the name of records begins or ends with it.
func (p Place) String() string { return p.Home + "\x00" + p.Key }
