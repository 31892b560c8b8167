package caddyhttp

import (
	"net/http"
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

// defaultMaxInFlight is the default of max_in_flight.
const defaultMaxInFlight = 1000

// inFlight counts the messages of clients that are not answered yet, over all
// sites and reloads, because they share the memory of the process.
type inFlight struct{ n atomic.Int64 }

// enter counts a message in and reports true, unless max messages are under
// way. After true, the caller calls leave.
func (f *inFlight) enter(max int) bool {
	if f.n.Add(1) > int64(max) {
		f.leave()
		return false
	}
	return true
}

func (f *inFlight) leave() { f.n.Add(-1) }

// overloaded returns the response to a message that is not read because too
// many are under way.
func overloaded(w http.ResponseWriter) *api.Response {
	w.Header().Set("Retry-After", "1")
	return api.Errorf(http.StatusServiceUnavailable, "the gateway has too many messages under way (max_in_flight); try again in a second").Response()
}
