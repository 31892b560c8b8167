package caddyhttp

import (
	"cmp"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// inFlight counts the messages that are not answered yet, over all sites and
// reloads, because they share the memory of the process.
type inFlight struct {
	mu        sync.Mutex
	total     int
	clients   int                // messages with addresses in the request, and unverified ones
	byAddress map[netip.Addr]int // of clients, by their own address
}

// inFlightLimits bounds the messages under way. Part of it is for messages for
// keys only, because the addresses in requests may be slow or dead.
type inFlightLimits struct {
	total      int // all messages
	clients    int // unverified messages, and those with URLs, or addresses of files, of clients
	perAddress int // of these, those of one client address
}

// newInFlightLimits returns limits with the defaults for those that are 0.
func newInFlightLimits(total, clients, perAddress int) inFlightLimits {
	clients = min(cmp.Or(clients, max(total/2, 1)), total)
	perAddress = min(cmp.Or(perAddress, max(clients/8, 1)), clients)
	return inFlightLimits{total, clients, perAddress}
}

// entry is the room of one message in inFlight.
type entry struct {
	f          *inFlight
	total      bool // it is in f.total
	client     bool // it is in f.clients
	unverified bool // its token or signature has not been verified
	from       netip.Addr
}

// enter counts a message in, or returns the error for the client if there is no
// room for it. After nil, the caller calls leave.
func (f *inFlight) enter(l inFlightLimits) (entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, entry{total: true})
}

// enterClient is like enter for a message that may have URLs. from is the
// address of the client.
func (f *inFlight) enterClient(l inFlightLimits, from netip.Addr) (entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, entry{total: true, client: true, from: from})
}

// enterUnverified is like enterClient for a message whose token or signature has not
// been verified. When it has been, the caller calls verified.
func (f *inFlight) enterUnverified(l inFlightLimits, from netip.Addr) (entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, entry{total: true, client: true, unverified: true, from: from})
}

// enterFetch counts a message that has entered among those with URLs, while
// files are fetched from addresses in the request.
func (f *inFlight) enterFetch(l inFlightLimits, from netip.Addr) (entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, entry{client: true, from: from})
}

// add counts e in. The caller holds the lock.
func (f *inFlight) add(l inFlightLimits, e entry) (entry, error) {
	switch {
	case e.total && f.total >= l.total:
		return entry{}, errTooMany("the gateway has too many messages under way, at most %d (max_in_flight)", l.total)
	case e.unverified && f.clients >= l.clients:
		return entry{}, errTooMany("too many requests whose token or signature has not been verified are under way, at most %d (client_limits in_flight)", l.clients)
	case e.unverified && f.byAddress[e.from] >= l.perAddress:
		return entry{}, errTooMany("too many requests from your address whose token or signature has not been verified are under way, at most %d (client_limits in_flight_per_address)", l.perAddress)
	case e.client && f.clients >= l.clients:
		return entry{}, errTooMany("the gateway has too many messages with URLs of clients under way, at most %d (client_limits in_flight)", l.clients)
	case e.client && f.byAddress[e.from] >= l.perAddress:
		return entry{}, errTooMany("too many messages with URLs from your address are under way, at most %d (client_limits in_flight_per_address)", l.perAddress)
	}
	if e.total {
		f.total++
	}
	if e.client {
		if f.byAddress == nil {
			f.byAddress = map[netip.Addr]int{}
		}
		f.clients++
		f.byAddress[e.from]++
	}
	e.f = f
	return e, nil
}

// verified makes an entry of enterUnverified one of enter.
func (e *entry) verified() {
	if !e.unverified {
		return
	}
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	e.leaveClients()
	e.client, e.unverified = false, false
}

// distrust makes an entry of enter one of enterClient, or returns the error for the client
// if there is no room for it.
func (e *entry) distrust(l inFlightLimits, from netip.Addr) error {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if _, err := e.f.add(l, entry{client: true, from: from}); err != nil {
		return err
	}
	e.client, e.from = true, from
	return nil
}

func (e *entry) leave() {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if e.total {
		e.f.total--
	}
	if e.client {
		e.leaveClients()
	}
}

// leaveClients removes e from the messages of clients. The caller holds the lock.
func (e *entry) leaveClients() {
	e.f.clients--
	if e.f.byAddress[e.from]--; e.f.byAddress[e.from] == 0 {
		delete(e.f.byAddress, e.from)
	}
}

// load returns the number of messages under way.
func (f *inFlight) load() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// errTooMany returns the error for a message that is not read because too many
// are under way.
func errTooMany(format string, limit int) *api.Error {
	e := api.Errorf(http.StatusServiceUnavailable, format+"; try again in a second", limit)
	e.RetryAfter = time.Second
	return e
}

// clientAddress returns the address of the client that the server determined, as [api.ClientNetwork] does. It returns the zero
// Addr if the client has no IP address.
func clientAddress(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddr(clientIP(r))
	if err != nil {
		return netip.Addr{}
	}
	return api.ClientNetwork(addr)
}
