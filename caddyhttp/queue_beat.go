package caddyhttp

import (
	"fmt"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// QueueBeat calls a watchdog outside, which raises an alarm when the calls end: the
// gateway calls it while it can store messages and none has waited too long. Of several
// gateways that share a queue, one makes each call.
type QueueBeat struct {
	// The address, which begins with `http://` or `https://`. Placeholders are replaced. A
	// status from 200 to 299 is a success. Example: `{env.WATCHDOG_URL}`. Required.
	URL string `json:"url,omitempty"`

	// How often it is called. A duration such as `"1m"`, or a number of nanoseconds, from
	// 1s to 24h. Required.
	Interval caddy.Duration `json:"interval,omitempty"`
}

// check makes the checks that are possible before placeholders are replaced.
func (c *QueueBeat) check() error {
	if c == nil {
		return nil
	}
	if i := time.Duration(c.Interval); i < time.Second || i > heartbeat.MaxWatchdog {
		return heartbeat.ErrWatchdogInterval
	}
	if c.URL == "" {
		return heartbeat.ErrWatchdogURL
	}
	return placeholder.Check(c.URL)
}

// resolve returns the watchdog, or nil for none.
func (c *QueueBeat) resolve() (*outbox.Watchdog, error) {
	if c == nil {
		return nil, nil
	}
	text, err := placeholder.Resolve(c.URL)
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, heartbeat.ErrWatchdogURL // without the address, which is a secret
	}
	return &outbox.Watchdog{URL: u, Interval: time.Duration(c.Interval)}, nil
}
