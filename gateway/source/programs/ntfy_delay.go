package programs

import (
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// The bounds of ntfy's delays. A server of ntfy takes at most three days unless its operator allows
// more; the gateway has its own limit.
const (
	minNtfyDelay = 10 * time.Second
	maxNtfyDelay = 30 * 24 * time.Hour
)

// ntfyDuration matches a duration such as 30m, 2 hours or 3 days.
var ntfyDuration = lazyregexp.New(`(?i)^(\d{1,9})\s*(d|days?|h|hours?|m|mins?|minutes?|s|secs?|seconds?)$`)

// setDelay sets when the message is sent. See https://docs.ntfy.sh/publish/#scheduled-delivery;
// times in English are refused.
func (n ntfyMessage) setDelay(m *source.Message) error {
	text := n.field("delay", "at", "in")
	if text == "" {
		return nil
	}
	at, ok := parseNtfyDelay(text, n.request.Time)
	switch {
	case !ok:
		return ntfyErrorf("40004", "the delay must be a duration, such as 30m or 2 days, or a Unix time, such as 1639194738; times in English "+
			"are not read here")
	case at.Before(n.request.Time.Add(minNtfyDelay)):
		return ntfyErrorf("40005", "the delay must be at least 10 seconds")
	case at.After(n.request.Time.Add(maxNtfyDelay)):
		return ntfyErrorf("40006", "the delay must be at most 30 days")
	}
	m.SendAt = at.Format(time.RFC3339)
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		m.SendAt = at.Sub(n.request.Time).String() // on the queue's clock
	}
	compose.Echo(m, "time", at.Unix())
	compose.Echo(m, "expires", at.Add(ntfyExpires).Unix())
	return nil
}

// parseNtfyDelay returns the time for a delay.
func parseNtfyDelay(text string, now time.Time) (time.Time, bool) {
	if unix, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(unix, 0), true
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), true
	}
	found := ntfyDuration.FindStringSubmatch(text)
	if found == nil {
		return time.Time{}, false
	}
	count, err := strconv.Atoi(found[1])
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}[found[2][0]|0x20]
	if err != nil || time.Duration(count) > 10*maxNtfyDelay/unit {
		count = int(10 * maxNtfyDelay / unit) // handling of the alerts that rulers post
	}
	return now.Add(time.Duration(count) * unit), err == nil
}
