package outbox

import (
	"net/url"
	"time"
)

// Watchdog is a [QueueBeat] ready for use.
type Watchdog struct {
	URL      *url.URL
	Interval time.Duration
}

// KindWatchdog begins the record that is due when a gateway calls the watchdog.
const KindWatchdog = 'W'
