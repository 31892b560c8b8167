package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxPreferredWait bounds how long a client can ask to wait for the results.
const maxPreferredWait = time.Minute

// Preference holds the preferences in the header Prefer of a request (RFC
// 7240).
type Preference struct {
	// Async means that the client accepts a 202 for a message that is queued. The
	// other field is zero unless it is set.
	Async bool

	// Wait is how long the client wants to wait for the results.
	Wait time.Duration
}

// ParsePrefer reads the preferences respond-async and wait (RFC 7240, sections
// 4.1 and 4.3). respond-async alone stands for wait=0. A wait of more than a
// minute is a minute. Other preferences, and malformed ones, are ignored.
func ParsePrefer(h http.Header) (p Preference) {
	if len(h["Prefer"]) == 0 {
		return p
	}
	hasWait := false
	for _, element := range splitUnquoted(strings.Join(h.Values("Prefer"), ","), ',') {
		element, _, _ = strings.Cut(element, ";")
		name, value, _ := strings.Cut(element, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.Async = true
		case "wait":
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil && !hasWait { // of repeated preferences, the first counts
				p.Async, p.Wait, hasWait = true, min(time.Duration(n)*time.Second, maxPreferredWait), true
			}
		}
	}
	return p
}

// applied returns the value of the header Preference-Applied for a 202.
func (p Preference) applied() string {
	if p.Wait > 0 {
		return "respond-async, wait=" + strconv.Itoa(int(p.Wait.Seconds()))
	}
	return "respond-async"
}
