package alerting

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Engine are the incidents, and the rules over time.
type Engine struct {
	*outbox.Outbox
	Receipts Receipts
	Groups   groupSizes
	shares   keyShares
	counts   incidentCounts
	Silences silenceCache
}

// Receipts are those of devices. A step counts as told only with the receipt.
type Receipts struct {
	// Name returns the name of the record of a message to the destination with a hash.
	Name func(target, message string) queue.Hash

	// Keep returns the record of a receipt as it is.
	Keep func(old []byte) queue.Record

	// Confirms reports whether a receipt confirms that the device has shown the message;
	// decided is false as long as it may do so later.
	Confirms func(record []byte, now time.Time) (delivered, decided bool)
}
