package caddyhttp

import (
	"cmp"
	"fmt"

	"github.com/dustin/go-humanize"
)

// resolveClientLimits sets the limits that clientLimits configures, after the
// settings that their defaults depend on.
func (r *resolved) resolveClientLimits() error {
	c := r.clientLimits
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"in_flight", int64(c.InFlight)},
		{"in_flight_per_address", int64(c.InFlightPerAddress)},
		{"memory", c.Memory},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d; it must be above 0", n.name, n.value)
		}
	}
	r.inFlight = newInFlightLimits(r.maxInFlight, c.InFlight, c.InFlightPerAddress)
	minimum := r.limits.MinMemory()
	if c.Memory > 0 && c.Memory < minimum {
		return fmt.Errorf("memory is %s; it must be at least 8 times max_body, %s", humanize.IBytes(uint64(c.Memory)), humanize.IBytes(uint64(minimum)))
	}
	r.memory = cmp.Or(c.Memory, max(defaultMemory, minimum))
	return nil
}
