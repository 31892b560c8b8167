package gateway

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// forgetTimeout bounds how long a client waits that has deleted a saved key. What is left
// then belongs to nobody, and its time ends.
const forgetTimeout = 10 * time.Second

// ForgetKey removes what is kept for a saved key that was deleted: its devices and the
// texts of its inbox. Its silences, incidents and invitations end by themselves; no other
// key has them. who is the user who has deleted the key; "" if nobody is known.
func (q *Rooms) ForgetKey(ctx context.Context, space, id, name, who string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	k := &site.Key{Name: name, Saved: true, Space: space, ID: id}
	at := k.DevicePlace("")
	devices, err := q.RemoveAllDevices(ctx, at)
	for _, d := range devices {
		q.DeviceChanged(device.DeviceRemoved, name, d.Name, who)
	}
	if err := errors.Join(err, q.Inboxes.Clear(ctx, at.String())); err != nil {
		q.Log.Warn("what was kept for a saved key that was deleted cannot be removed now; no key of the same name gets it", zap.String("key", name), zap.Error(err))
	}
}
