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
	// MaxBody bounds a JSON body, including its files in base64, or an
	// urlencoded form, in bytes. In a multipart form it bounds all parts
	// together that are not files.
	MaxBody int64

	// MaxFiles bounds the number of attachments; 0 turns attachments off.
	MaxFiles int

	// MaxFileSize bounds each attachment, in bytes.
	MaxFileSize int64

	// RemoteFiles allows attachments that the gateway fetches from an address.
	RemoteFiles bool

	// FetchTimeout bounds the time in which all of them are fetched.
	FetchTimeout time.Duration

	// Egress decides which addresses they may be fetched from.
	Egress *egress.Policy

	// Client holds the limits of a message to URLs of the request; nil means no
	// limits.
	Client *notifier.Limits

	// Memory counts the memory that the request holds. Close frees it. The zero
	// Allocation has no limit.
	Memory memory.Allocation
}

// MinMemory returns the minimum memory limit for all requests together, in
// bytes. It has room for the longest text of one request.
func (l Limits) MinMemory() int64 {
	const shares = 2 // clients' URLs have half of the memory
	if l.MaxBody > math.MaxInt64/(shares*TextCopies) {
		return math.MaxInt64
	}
	return shares * TextCopies * l.MaxBody
}

// TextCopies is the number of copies of a text in memory: as it arrives,
// decoded, and, for the first delivery, as part of its request and while that
// is encoded.
const TextCopies = 4
