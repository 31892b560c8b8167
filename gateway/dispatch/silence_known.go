package dispatch

import (
	"strings"
	"time"
)

// A key without rules has no records of what its destinations know of incidents. When a
// silence of it begins, each gateway stores what it remembers, so that a destination that
// was told of a problem is told that it is over.

// With returns the times of the incidents whose names begin with a prefix.
func (x *incidentTimes) With(prefix string) map[string]time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]time.Time{}
	for name, at := range x.at {
		if strings.HasPrefix(name, prefix) {
			out[name] = at
		}
	}
	return out
}
