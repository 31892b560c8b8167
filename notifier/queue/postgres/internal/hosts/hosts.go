// Package hosts decides in which order the addresses of a connection string are tried.
package hosts

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How long a host has to answer a new connection, unless the connection string has connect_timeout.
const (
	Time     = 5 * time.Second // the only one
	TimeEach = 2 * time.Second // each of several
)

// endTime is how long cancelling a statement may take.
const endTime = time.Second

// Hosts are the addresses of a connection string. The one
// that answered last is the first, and those that have failed since are the last. So a
// host that hangs costs each connection at most its own time, and usually none. It knows
// no pool, and works through the hooks of a configuration alone.
type Hosts struct {
	mu       sync.Mutex
	several  bool            // there is more than one address
	answered string          // the address that answered last; "" if it has failed since
	failed   map[string]bool // addresses that have not answered since they failed
}

// Attempt is an attempt to connect.
type Attempt struct {
	timeout time.Duration // of each address
	hung    func(address string)

	mu      sync.Mutex // a connection that is refused cancels its statement meanwhile
	address string     // that is tried, or was tried last
	began   time.Time  // when it was tried first
	done    bool       // it has succeeded
}

// next notes that an address is tried, possibly in several ways within the same time. It calls hung
// if the address before has used up its time. It reports false if the address is not tried for the
// attempt: a connection that is lost, or refused after it was opened, cancels its statement, and
// that may take longer than the attempt.
func (a *Attempt) next(ctx context.Context, address string) bool {
	a.mu.Lock()
	end, ok := ctx.Deadline()
	if a.done || ok && time.Until(end) > a.timeout {
		a.mu.Unlock()
		return false
	}
	before, took := a.address, time.Since(a.began)
	if address != before {
		a.address, a.began = address, time.Now()
	}
	a.mu.Unlock()
	if before != "" && before != address && took > a.timeout*9/10 { // its time began a little earlier
		a.hung(before)
	}
	return true
}

// Connected notes that the attempt has succeeded, and returns the address.
func (a *Attempt) Connected() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	return a.address
}

// Attempt changes a configuration for one attempt to connect: the hosts have their present
// order and a time of their own. ctx limits how long names are looked up. hung is called
// with each address that does not answer in its time, before the next one is tried.
func (h *Hosts) Attempt(ctx context.Context, c *pgconn.Config, hung func(address string)) *Attempt {
	a := &Attempt{hung: hung}
	lookUpName, dial, timeout := c.LookupFunc, c.DialFunc, c.ConnectTimeout
	ways := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	several := slices.ContainsFunc(ways, func(w *pgconn.FallbackConfig) bool { return w.Host != c.Host || w.Port != c.Port })
	names := lookUp(ctx, lookUpName, cmp.Or(timeout, timeOf(several)), ways)

	h.mu.Lock()
	defer h.mu.Unlock()
	ranks := make(map[*pgconn.FallbackConfig]int, len(ways))
	byIP := map[string]int{}
	addresses := map[string]bool{}
	for _, w := range ways {
		ranks[w] = lastRank
		for _, ip := range names[w.Host].ips {
			_, address := pgconn.NetworkAddress(ip, w.Port)
			addresses[address] = true
			rank := h.rank(address)
			ranks[w] = min(ranks[w], rank)
			if before, ok := byIP[ip]; !ok || rank < before {
				byIP[ip] = rank
			}
		}
	}
	h.several = several || len(addresses) > 1
	c.ConnectTimeout = cmp.Or(timeout, timeOf(h.several))
	a.timeout = c.ConnectTimeout
	slices.SortStableFunc(ways, func(v, w *pgconn.FallbackConfig) int { return cmp.Compare(ranks[v], ranks[w]) })
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
	for _, n := range names {
		slices.SortStableFunc(n.ips, func(a, b string) int { return cmp.Compare(byIP[a], byIP[b]) })
	}
	c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return names[host].ips, names[host].err }
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if a.next(ctx, address) {
			return dial(ctx, network, address)
		}
		ctx, cancel := context.WithTimeout(ctx, endTime)
		defer cancel()
		nc, err := dial(ctx, network, address)
		if err == nil {
			err = nc.SetDeadline(time.Now().Add(endTime))
		}
		return nc, err
	}
	return a
}

// timeOf returns how long a host has to answer, if it is one of several or not.
func timeOf(several bool) time.Duration {
	if several {
		return TimeEach
	}
	return Time
}

// name is a host with its addresses.
type name struct {
	ips []string
	err error
}

// lookUp looks up the names of hosts, each within the time that it has. The folder of a
// socket is its own address.
func lookUp(ctx context.Context, lookUp pgconn.LookupFunc, timeout time.Duration, ways []*pgconn.FallbackConfig) map[string]name {
	names := map[string]name{}
	for _, w := range ways {
		if _, ok := names[w.Host]; ok {
			continue
		}
		n := name{ips: []string{w.Host}}
		if network, _ := pgconn.NetworkAddress(w.Host, w.Port); network != "unix" {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			n.ips, n.err = lookUp(ctx, w.Host)
			cancel()
			if n.err == nil && len(n.ips) == 0 { // as for names that end in .onion
				n.err = &net.DNSError{Err: "no such host", Name: w.Host, IsNotFound: true}
			}
		}
		names[w.Host] = n
	}
	return names
}

// rank returns a number that is lower for an address that is tried earlier. The caller holds the
// lock.
func (h *Hosts) rank(address string) int {
	switch {
	case address == h.answered:
		return 0
	case h.failed[address]:
		return lastRank
	}
	return 1
}

const lastRank = 2

// NoteAnswer notes that an address has answered.
func (h *Hosts) NoteAnswer(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = address
	delete(h.failed, address)
}

// NoteFailure notes that an address does not answer, or is no longer of use.
func (h *Hosts) NoteFailure(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered == address {
		h.answered = ""
	}
	if h.failed == nil {
		h.failed = map[string]bool{}
	}
	h.failed[address] = true
}

// AreSeveral reports whether there is more than one address.
func (h *Hosts) AreSeveral() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.several
}
