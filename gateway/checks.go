package gateway

import (
	"crypto/rand"
	"maps"
	"net/http"
	"sync"
	"time"
)

// CheckHeader is the header with a token of [Checks] in a request, and with the answer in its
// response.
const CheckHeader = "X-Caddy-Notify-Check"

// Checks has tokens by which an operator finds out whether an address leads to this gateway: only
// this process knows the answer to a token. A request without a token gets no answer, so that
// strangers cannot even find out whether two addresses lead to one gateway. The zero value is ready
// to use.
type Checks struct {
	mu  sync.Mutex
	all map[string]check // by token
}

type check struct {
	answer string
	until  time.Time
}

// The bounds of [Checks].
const (
	checkTime = time.Minute
	maxChecks = 100
)

// New returns a new token, which is valid for a minute, and the answer to it. Both are "" if
// too many tokens are valid.
func (c *Checks) New() (token, answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.all, func(_ string, x check) bool { return now.After(x.until) })
	if len(c.all) >= maxChecks {
		return "", ""
	}
	if c.all == nil {
		c.all = map[string]check{}
	}
	token, answer = rand.Text(), rand.Text()
	c.all[token] = check{answer, now.Add(checkTime)}
	return token, answer
}

// Respond sets the header of the response to a request with a valid token.
func (c *Checks) Respond(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get(CheckHeader)
	if token == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.all[token]; ok && time.Now().Before(x.until) {
		w.Header().Set(CheckHeader, x.answer)
	}
}
