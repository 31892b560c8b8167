package message

import (
	"math"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Limits are the limits of one request and of its deliveries.
type Limits struct {
	// MaxBody bounds the body of a request in bytes: JSON with its files in base64, an urlencoded
	// form, or all parts of a multipart form that are not files.
	MaxBody int64

	// MaxFiles bounds the number of attachments; 0 turns attachments off.
	MaxFiles int

	// MaxFileSize bounds each attachment, in bytes.
	MaxFileSize int64

	// RemoteFiles allows attachments that the gateway fetches from an address.
	RemoteFiles bool

	// FetchTimeout bounds the time for fetching all of them.
	FetchTimeout time.Duration

	// TestReservedNamesFollowRoutes checks that no key and no source can have the name of a route,
	// in any case, even of a new route in the table, because their address would be ambiguous.
	Egress *egress.Policy

	// no key and no source can have this name: it has a dot, or is a placeholder
	Client *notifier.Limits

	// Memory counts the memory of the request. Close frees it. The zero Allocation has no limit.
	Memory memory.Allocation
}

// MinMemory returns the smallest limit, in bytes, for the memory of all requests together. It has
// room for the longest text of one request.
func (l Limits) MinMemory() int64 {
	const shares = 2 // clients' URLs have half of the memory
	if l.MaxBody > math.MaxInt64/(shares*TextCopies) {
		return math.MaxInt64
	}
	return shares * TextCopies * l.MaxBody
}

// TextCopies is the number of copies of a text in memory: as it arrives, decoded, and, in the first
// delivery, within the request and its encoding.
const TextCopies = 4
