package heartbeat_test

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestStoredWatchdog checks that what earlier versions have stored of the watchdog can be
// read, and that this one stores the same.
func TestStoredWatchdog(t *testing.T) {
	const stored = "W\b\x82\x80\xaf\xa2\xdb\xff\xad\x06\x10\x84\x80\xaf\xa2\xdb\xff\xad\x06\x18\x86\x80\xaf\xa2\xdb\xff\xad\x06\"\tno answer"
	at := func(us int64) time.Time { return time.UnixMicro(1_790_000_000_000_000 + us) }
	s := heartbeat.WatchdogState{Next: at(1), Success: at(2), Since: at(3), Problem: "no answer"}
	if got := heartbeat.WatchdogStates.Record(&s, s.Next, queue.Hash{}).Data; string(got) != stored {
		t.Errorf("it is stored as %q, but queues that exist have %q", got, stored)
	}
	if got := *heartbeat.WatchdogStates.DecodeOrNew([]byte(stored)); got != s {
		t.Errorf("it is read as %+v", got)
	}
	if got := *heartbeat.WatchdogStates.DecodeOrNew([]byte(stored[:len(stored)-1])); got != (heartbeat.WatchdogState{}) {
		t.Errorf("a damaged one is read as %+v", got)
	}
}
