package caddyhttp

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Defaults of client_limits that do not depend on other settings.
const (
	defaultMemory     = 256 << 20
	defaultDeliveries = 500
	defaultRequests   = 1500
	defaultBytes      = 256 << 20
	defaultRetry      = 2
	defaultWait       = time.Second
)

// resolveClientLimits sets the limits that client configures. It is
// called after the settings that their defaults depend on are set.
func (r *settled) resolveClientLimits() error {
	c := r.client
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"in_flight", int64(c.InFlight)},
		{"in_flight_per_address", int64(c.InFlightPerAddress)},
		{"memory", c.Memory},
		{"deliveries", int64(c.Deliveries)},
		{"requests", int64(c.Requests)},
		{"bytes", c.Bytes},
		{"wait", int64(c.Wait)},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d; it must be above 0", n.name, n.value)
		}
	}
	retry := defaultRetry
	if c.Retry != nil {
		if retry = *c.Retry; retry < 0 {
			return fmt.Errorf("retry is %d; it must be 0 (no retries) or more", retry)
		}
	}
	r.Limits.Client = &notifier.Limits{
		Deliveries: cmp.Or(c.Deliveries, defaultDeliveries),
		Requests:   cmp.Or(c.Requests, defaultRequests),
		Bytes:      cmp.Or(c.Bytes, defaultBytes),
		Retry:      retry,
		Wait:       cmp.Or(time.Duration(c.Wait), defaultWait),
	}
	r.Limits.InFlight = site.NewInFlightLimits(r.Limits.InFlight.Total, c.InFlight, c.InFlightPerAddress)
	minimum := r.Limits.MinMemory()
	if c.Memory > 0 && c.Memory < minimum {
		return fmt.Errorf("memory is %s; it must be at least 8 times max_body, %s", humanize.IBytes(uint64(c.Memory)), humanize.IBytes(uint64(minimum)))
	}
	r.Limits.Memory = cmp.Or(c.Memory, max(defaultMemory, minimum))
	return nil
}

// checkInFlight returns an error for a limit that has no effect because it is above the
// one that it is a part of.
func (r *settled) checkInFlight() error {
	c := r.client
	if c.InFlight > r.Limits.InFlight.Total {
		return fmt.Errorf("in_flight is %d, but max_in_flight lets only %d messages be under way; lower in_flight, or raise max_in_flight", c.InFlight, r.Limits.InFlight.Total)
	}
	if all := r.Limits.InFlight.Clients; c.InFlightPerAddress > all {
		by := ""
		if c.InFlight == 0 {
			by = ", half of max_in_flight"
		}
		return fmt.Errorf("in_flight_per_address is %d, but in_flight for all addresses is %d%s; lower in_flight_per_address, or raise in_flight", c.InFlightPerAddress, all, by)
	}
	return nil
}
