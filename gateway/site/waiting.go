package site

import (
	"net/netip"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

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
