package device

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// pushKeyCache caches the VAPID key. All gateways that share a store use the same one, because
// browsers bind their subscriptions to it.
type pushKeyCache struct {
	key  atomic.Pointer[webpush.Key]
	told atomic.Bool // it was logged that the key cannot be read
}

// ErrPushKeyLost is returned when devices have subscribed with a VAPID key that the store no longer
// has. A new key would end all their subscriptions.
var ErrPushKeyLost = brokenError("no device can be added at the moment; the log of the gateway tells its operator why",
	"the VAPID key that the devices have subscribed with is damaged in the queue's store; restore a back-up of the queue (caddy notify "+
		"queue backup), or revoke all devices with caddy notify devices revoke <key> --all and invite them again: without a device, a new "+
		"VAPID key is made")

// PushKey returns the VAPID key. It makes the key at the first call; the transaction of the store
// is the lock.
func (q *Registry) PushKey(ctx context.Context) (*webpush.Key, error) {
	if key := q.vapid.key.Load(); key != nil {
		return key, nil
	}
	if err := q.Read(ctx); err != nil {
		return nil, err
	}
	var key *webpush.Key
	name := q.outbox.Queue.Hash("the VAPID key")
	err := q.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		if key = storedPushKey(tx.Get(name)); key != nil {
			return nil
		}
		if q.Any() {
			return ErrPushKeyLost
		}
		var number []byte
		var err error
		if key, number, err = webpush.NewKey(); err != nil {
			return err
		}
		tx.Put(name, queue.Record{Data: outbox.EncodeRecord(KindPushKey, number), Due: outbox.FarAway(q.outbox.Queue.Now())})
		return nil
	}})
	if errors.Is(err, ErrPushKeyLost) && !q.vapid.told.Swap(true) {
		q.outbox.Log.Error("devices get no messages", zap.Error(ErrPushKeyLost.Fault))
	}
	if err != nil {
		return nil, err
	}
	q.vapid.told.Store(false)
	q.vapid.key.Store(key)
	return key, nil
}

// storedPushKey returns the key in a record, or nil if it is missing or damaged: stores do not tell
// these apart.
func storedPushKey(record []byte) *webpush.Key {
	if outbox.KindOf(record) != KindPushKey {
		return nil
	}
	key, err := webpush.ParseKey(record[1:])
	if err != nil {
		return nil
	}
	return key
}
