package caddyhttp

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
)

// idReads is how many IDs of saved keys are read from the storage at once.
const idReads = 16

// places returns the places of saved keys by name (see [delivery.place]), at most Refresh
// old. It has none of a key that does not exist or is damaged. s may be nil. The error is
// returned if the storage cannot be read; the others are there.
func (s *savedKeys) places(ctx context.Context, names []string) (map[string]string, error) {
	out := make(map[string]string, len(names))
	if s == nil {
		return out, nil
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	slots := make(chan struct{}, idReads)
	for _, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			id, err := s.store.ID(ctx, name, time.Duration(s.Refresh))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[name] = savedHome(s.space.name, id) + "\x00" + name
			case !errors.Is(err, configstore.ErrNotFound) && !errors.Is(err, configstore.ErrDamaged):
				failed = errSavedUnavailable(err)
			}
		})
	}
	wg.Wait()
	return out, failed
}

// forgetTimeout bounds how long a client waits that has deleted a saved key. What is left
// then belongs to nobody, and its time ends.
const forgetTimeout = 10 * time.Second

// forgetKey removes what is kept for a saved key that was deleted: its devices and the
// texts of its inbox. Its silences, incidents and invitations end by themselves; no other
// key has them. who is the user who has deleted the key; "" if nobody is known.
func (q *openQueue) forgetKey(ctx context.Context, space, id, name, who string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	k := &key{name: name, saved: true, space: space, id: id}
	at := k.devicePlace("")
	devices, err := q.removeAllDevices(ctx, at)
	for _, d := range devices {
		q.deviceChanged(deviceRemoved, name, d.Name, who)
	}
	if err := errors.Join(err, q.inboxes.Clear(ctx, at.String())); err != nil {
		q.log.Warn("what was kept for a saved key that was deleted cannot be removed now; no key of the same name gets it", zap.String("key", name), zap.Error(err))
	}
}
