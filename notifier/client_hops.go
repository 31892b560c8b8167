package notifier

import (
	"strconv"
	"strings"
)

// HopsHeader is the header field in which a request from one gateway to another
// has the number of gateways that the message has passed through.
const HopsHeader = "X-Apprise-Recursion-Count"

const hopsMark = " hops/"

// userAgent returns the User-Agent of a request. given is the one that the URL
// asks for. It contains the number of gateways that the message has passed
// through, for [HopsOf]. Only a URL of the operator can hide that number: a
// client could otherwise send a message in circles.
func (c *Client) userAgent(given string) string {
	own := c.pool.UserAgent()
	if c.hops > 0 {
		own += hopsMark + strconv.Itoa(c.hops)
	}
	switch {
	case given == "":
		return own
	case c.policy() == nil:
		return given
	}
	return given + " " + own
}

// HopsOf returns the number of gateways that a message had passed through
// before the one that sent a request with this User-Agent. product is a text
// that the User-Agent of every gateway contains. HopsOf returns -1 if the
// request does not come from a gateway.
func HopsOf(userAgent, product string) int {
	ours := strings.LastIndex(userAgent, product) // a client's own text comes before it
	if ours < 0 {
		return -1
	}
	_, n, _ := strings.Cut(userAgent[ours:], hopsMark)
	hops, err := strconv.Atoi(n)
	if err != nil || hops < 0 {
		return 0
	}
	return hops
}
