package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxHops bounds the gateways that a message may have passed through.
const maxHops = 1

// Hops returns how many gateways the message of r has passed through. Gateways
// send the number in the header X-Apprise-Recursion-Count. This gateway also sends
// it in the User-Agent, which every service has; product is the part of the
// User-Agent that identifies a gateway. The error is a 508 if there are too many,
// so that no message circulates.
func Hops(r *http.Request, product string) (int, error) {
	own := notifier.HopsOf(r.UserAgent(), product) + 1
	text := "0"
	if values := r.Header.Values(notifier.HopsHeader); len(values) > 0 {
		text = strings.TrimSpace(values[0])
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, badRequest("the header X-Apprise-Recursion-Count must be a whole number, 0 or more")
	}
	n, err := strconv.Atoi(text) // it fails only if the number is too large
	if n = max(n, own); err != nil || n > maxHops {
		return 0, errLoop
	}
	return n, nil
}

var errLoop = Errorf(http.StatusLoopDetected, "the message has passed through too many gateways (X-Apprise-Recursion-Count above %d); check that they do not send to each other in a circle", maxHops)
