package device

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// knownCache has the devices of all keys, so that messages need not read the store. If the store is
// shared, the cache is refreshed each second.
type knownCache struct {
	now atomic.Pointer[knownDevices] // nil before it was read

	mu      sync.Mutex // held while it is read
	version []byte
}

// knownDevices are the devices of all keys. They do not change.
type knownDevices struct {
	lists   map[site.Place]*List
	damaged map[queue.Hash]bool // the names of records that cannot be read
}

// Known returns the cached devices of a key, or nil. It does not read the store.
func (q *Registry) Known(key site.Place) *List {
	known := q.known.now.Load()
	if known == nil {
		return nil
	}
	return known.lists[key]
}

// Ready reports whether the devices of all keys have been read.
func (q *Registry) Ready() bool { return q.known.now.Load() != nil }

// Any reports whether any key has devices, including devices that cannot be read.
func (q *Registry) Any() bool {
	known := q.known.now.Load()
	return known != nil && len(known.lists)+len(known.damaged) > 0
}

// ReadAgain drops the cached devices and the cached VAPID key. Both are read from the store when
// they are needed next.
func (q *Registry) ReadAgain() {
	q.known.now.Store(nil)
	q.vapid.key.Store(nil)
}

// Refresh reads the devices if other gateways may have changed them, or if they have not been read
// yet.
func (q *Registry) Refresh(ctx context.Context, conf *outbox.Configuration) {
	if conf.Global.Push == nil || !q.outbox.Shared && q.Ready() {
		return
	}
	if err := q.Read(ctx); err != nil && !q.Ready() && ctx.Err() == nil {
		q.outbox.Log.Debug("devices cannot be read yet", zap.Error(err))
	}
}

// Read reads the devices of all keys from the store if they have changed.
func (q *Registry) Read(ctx context.Context) error {
	c := &q.known
	c.mu.Lock()
	defer c.mu.Unlock()
	version, err := q.outbox.Queue.Records.Get(ctx, q.Records.Version())
	if err != nil || c.now.Load() != nil && slices.Equal(version, c.version) {
		return err
	}
	known := &knownDevices{map[site.Place]*List{}, map[queue.Hash]bool{}}
	for after, more := (queue.Hash{}), true; more; {
		records, err := q.outbox.Queue.Records.Group(ctx, q.Records.Group(), after, outbox.PageSize)
		if err != nil {
			return err
		}
		for _, r := range records {
			after = r.Name
			l, err := decodeDevices(r.Data)
			if err != nil {
				q.outbox.Log.Error("devices get no messages", zap.String("key", l.Key), zap.Error(fmt.Errorf("%w: %w", ErrDamaged.Fault, err)))
				known.damaged[r.Name] = true
			} else if len(l.All) > 0 {
				known.lists[l.Place] = l
			}
		}
		more = len(records) == outbox.PageSize
	}
	c.version = version
	c.now.Store(known)
	return nil
}
