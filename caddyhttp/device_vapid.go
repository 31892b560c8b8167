package caddyhttp

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// kindPushKey begins the record of the VAPID key, of which a store has one. All gateways
// that share the store use it, because browsers bind their subscriptions to it.
const kindPushKey = 'K'

// pushKeyCache has the VAPID key after it was read.
type pushKeyCache struct{ key atomic.Pointer[webpush.Key] }

var errPushKeyDamaged = errors.New("the VAPID key in the queue's store cannot be read")

// pushKey returns the VAPID key, which is made when it is needed first. The transaction
// of the store is the lock.
func (q *openQueue) pushKey(ctx context.Context) (*webpush.Key, error) {
	if key := q.vapid.key.Load(); key != nil {
		return key, nil
	}
	var key *webpush.Key
	err := q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{q.Hash("the VAPID key")}, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		number := []byte(nil)
		var err error
		switch {
		case len(old[0]) == 0:
			key, number, err = webpush.NewKey()
		case old[0][0] != kindPushKey:
			err = errPushKeyDamaged
		default:
			number = old[0][1:]
			key, err = webpush.ParseKey(number)
		}
		if err != nil {
			return nil, err
		}
		return &queue.RuledChange{Records: []queue.Record{{Data: encodeRecord(kindPushKey, number), Due: farAway(q.Now())}}}, nil
	}})
	if err != nil {
		return nil, err
	}
	q.vapid.key.Store(key)
	return key, nil
}
