package outbox

import "github.com/caddy-notify/caddy-notify/gateway/dispatch"

// TextSum is textSum.
func TextSum(d *dispatch.Delivery) []byte { return textSum(d) }

// Remembered returns how many destinations the log knows as failing.
func (l *FailureLog) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}
