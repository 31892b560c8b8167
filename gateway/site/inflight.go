package site

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// InFlight counts the messages without an answer yet, over all sites and reloads, because they
// share the memory of the process.
type InFlight struct {
	mu        sync.Mutex
	total     int
	clients   int                // messages with addresses in the request, and unverified ones
	byAddress map[netip.Addr]int // client messages by client address
}

// InFlightLimits bounds the messages under way. Messages with addresses in the request have only a
// part of the room, because these addresses may be slow or dead.
type InFlightLimits struct {
	Total      int // all messages
	Clients    int // unverified messages, and messages with a client's URLs or file addresses
	PerAddress int // of these, the messages of one client address
}

// newInFlightLimits returns limits, with defaults in place of 0.
func newInFlightLimits(total, clients, perAddress int) InFlightLimits {
	clients = min(cmp.Or(clients, max(total/2, 1)), total)
	perAddress = min(cmp.Or(perAddress, max(clients/8, 1)), clients)
	return InFlightLimits{total, clients, perAddress}
}

// Admission is the room of one message in [InFlight].
type Admission struct {
	f          *InFlight
	total      bool // it counts in f.total
	client     bool // it counts in f.clients
	unverified bool // its token or signature has not been verified
	from       netip.Addr
}

// Enter counts a message in. If there is no room, it returns an error for the client; otherwise the
// caller must call [Admission.Leave].
func (f *InFlight) Enter(l InFlightLimits) (Admission, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, Admission{total: true})
}

// EnterClient is like [InFlight.Enter] for a message that may have URLs of the client with the
// address from.
func (f *InFlight) EnterClient(l InFlightLimits, from netip.Addr) (Admission, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, Admission{total: true, client: true, from: from})
}

// EnterUnverified is like [InFlight.EnterClient] for a message whose token or signature is not
// verified yet. The caller calls [Admission.Verified] once it is.
func (f *InFlight) EnterUnverified(l InFlightLimits, from netip.Addr) (Admission, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, Admission{total: true, client: true, unverified: true, from: from})
}

// EnterFetch additionally counts a message that has entered as one with URLs, while its files are
// fetched from addresses in the request.
func (f *InFlight) EnterFetch(l InFlightLimits, from netip.Addr) (Admission, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(l, Admission{client: true, from: from})
}

// add counts e in. The caller holds the lock.
func (f *InFlight) add(l InFlightLimits, e Admission) (Admission, error) {
	switch {
	case e.total && f.total >= l.Total:
		return Admission{}, errTooMany("the gateway has too many messages under way, at most %d (max_in_flight)", l.Total)
	case e.unverified && f.clients >= l.Clients:
		return Admission{}, errTooMany("too many requests whose token or signature has not been verified are under way, at most %d "+
			"(client_limits in_flight)", l.Clients)
	case e.unverified && f.byAddress[e.from] >= l.PerAddress:
		return Admission{}, errTooMany("too many requests from your address whose token or signature has not been verified are under way, at "+
			"most %d (client_limits in_flight_per_address)", l.PerAddress)
	case e.client && f.clients >= l.Clients:
		return Admission{}, errTooMany("the gateway has too many messages with URLs of clients under way, at most %d (client_limits in_flight)",
			l.Clients)
	case e.client && f.byAddress[e.from] >= l.PerAddress:
		return Admission{}, errTooMany("too many messages with URLs from your address are under way, at most %d (client_limits "+
			"in_flight_per_address)", l.PerAddress)
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

// Verified counts a message of [InFlight.EnterUnverified] like one of [InFlight.Enter] from now
// on.
func (e *Admission) Verified() {
	if !e.unverified {
		return
	}
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	e.leaveClients()
	e.client, e.unverified = false, false
}

// Distrust counts a message of [InFlight.Enter] like one of [InFlight.EnterClient] from now on,
// or returns the error for the client if there is no room for it.
func (e *Admission) Distrust(l InFlightLimits, from netip.Addr) error {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	if _, err := e.f.add(l, Admission{client: true, from: from}); err != nil {
		return err
	}
	e.client, e.from = true, from
	return nil
}

// Leave counts the message out. The zero Admission takes no room.
func (e *Admission) Leave() {
	if e.f == nil {
		return
	}
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
func (e *Admission) leaveClients() {
	e.f.clients--
	if e.f.byAddress[e.from]--; e.f.byAddress[e.from] == 0 {
		delete(e.f.byAddress, e.from)
	}
}

// Load returns the number of messages under way.
func (f *InFlight) Load() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// errTooMany returns the error for a message that is not read because too many are under way.
func errTooMany(format string, limit int) *message.Error {
	e := message.Errorf(message.Unavailable, format+"; try again in a second", limit)
	e.RetryAfter = time.Second
	return e
}

// Bounds of the clients that wait at a gateway.
const (
	MaxWaiting          = 2000
	MaxWaitingPerKey    = 500 // for one key
	MaxWaitingPerClient = 250 // from one client address
)

// waitAgain is when a client that found no room should try again.
const waitAgain = 10 * time.Second

// Waiting counts the clients that wait, in a request or a stream, for an answer, messages or
// results. All sites of the process share it. The zero value is ready for use.
type Waiting struct {
	mu       sync.Mutex
	total    int
	byKey    map[string]int // by the place of the key
	byClient map[netip.Addr]int
}

// Enter counts a client in that waits at a key. If there is no room, it returns an error for the
// client; otherwise the caller must call leave once.
func (w *Waiting) Enter(place string, from netip.Addr) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.total >= MaxWaiting:
		return nil, errNoRoomToWait(message.Unavailable, "%d clients wait at this gateway", MaxWaiting)
	case w.byKey[place] >= MaxWaitingPerKey:
		return nil, errNoRoomToWait(message.Full, "%d clients wait for this key", MaxWaitingPerKey)
	case w.byClient[from] >= MaxWaitingPerClient:
		return nil, errNoRoomToWait(message.Full, "%d requests and streams from your address wait", MaxWaitingPerClient)
	}
	if w.byKey == nil {
		w.byKey, w.byClient = map[string]int{}, map[netip.Addr]int{}
	}
	w.total++
	w.byKey[place]++
	w.byClient[from]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.total--
		if w.byKey[place]--; w.byKey[place] == 0 {
			delete(w.byKey, place)
		}
		if w.byClient[from]--; w.byClient[from] == 0 {
			delete(w.byClient, from)
		}
	}, nil
}

// errNoRoomToWait returns the error for a client that cannot wait.
func errNoRoomToWait(kind message.Kind, format string, limit int) *message.Error {
	e := message.Errorf(kind, format+", which is the limit; try again in %s, or ask without waiting", limit, waitAgain)
	e.RetryAfter = waitAgain
	return e
}
