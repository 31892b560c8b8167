package caddyhttp

import (
	"net/http"
	"sync/atomic"
)

// defaultMaxInFlight is how many messages are under way at once before a site
// that sets no bound of its own answers 503.
const defaultMaxInFlight = 1000

// traffic counts the messages that clients have posted and that are not
// answered yet, over all sites and over reloads: memory is the process's.
type traffic struct{ now atomic.Int64 }

// enter counts a message in, unless so many are under way already. Who has
// entered must leave.
func (t *traffic) enter(most int) bool {
	if t.now.Add(1) > int64(most) {
		t.leave()
		return false
	}
	return true
}

func (t *traffic) leave() { t.now.Add(-1) }

// overloaded turns a message away before anything of its body is read.
func overloaded(w http.ResponseWriter) *refusal {
	w.Header().Set("Retry-After", "1")
	return refuse(http.StatusServiceUnavailable, "the gateway has as many messages under way as it may have (max_in_flight); try again in a second")
}
