package history

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/metrics"
)

// Refusal is a request, or a command of a mail client, that was refused.
type Refusal struct {
	metrics.RefusalID
	Time   time.Time
	Status int    // of HTTP, or the code of SMTP
	Text   string // the error that the client got
	Cause  string // what the client did not get: the text of an error of the network or of a file; "" if there is none
	Client string // its address; "" if unknown
}
