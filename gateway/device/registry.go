package device

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Registry stores the devices of keys in the queue, with their states and the VAPID key that signs
// their messages. Errors for clients are of the type [*message.Error]; all others come from the
// store.
type Registry struct {
	outbox.NoArm
	outbox.NoTurn
	outbox.NoEnded
	outbox.NoRecheck

	Invitations *Invitations
	Receipts    *Receipts
	Records     Records

	// Registrations limits how often a client may try to subscribe a device.
	Registrations Limiter

	outbox    *outbox.Outbox
	incidents *alerting.Incidents
	usage     *outbox.Usage
	known     knownCache
	vapid     pushKeyCache
}

// NewRegistry returns the devices in an outbox. Their receipts confirm steps of incidents.
func NewRegistry(o *outbox.Outbox, incidents *alerting.Incidents) *Registry {
	records := Records{o}
	return &Registry{
		Invitations: newInvitations(records), Receipts: newReceipts(records, incidents), Records: records,
		outbox: o, incidents: incidents,
		usage: o.NewUsage(KindDevices, weigh, func(ctx context.Context, place string, f func([]byte)) error {
			b, err := o.Queue.Records.Get(ctx, records.devices(place))
			f(b)
			return err
		}),
	}
}

// weigh returns the size of the devices of a key with their states.
func weigh(record []byte) outbox.Used {
	w := outbox.Weigh(record)
	l, err := decodeDevices(record)
	if err != nil {
		return w
	}
	w.Count = len(l.All)
	for i := range l.All {
		s := State{Name: l.All[i].Name, ID: l.All[i].ID, Place: l.Place}
		w.Bytes += outbox.Weigh(states.Record(&s, time.Time{}, queue.Hash{}).Data).Bytes + maxStateRest
	}
	return w
}

// Of returns the devices of a key, or nil if it has none. It reads the store if an earlier read
// failed. The error is [ErrDamaged] if the record is damaged.
func (q *Registry) Of(ctx context.Context, key site.Place) (*List, error) {
	if q.known.now.Load() == nil {
		if err := q.Read(ctx); err != nil {
			return nil, err
		}
	}
	known := q.known.now.Load()
	if known == nil { // they have changed meanwhile
		return nil, nil
	}
	l := known.lists[key]
	if l == nil && len(known.damaged) > 0 && known.damaged[q.Records.Devices(key)] {
		return nil, ErrDamaged
	}
	return l, nil
}

// Find returns a device of a key, or nil. It reads the store for an unknown device, which may have
// just subscribed at another gateway.
func (q *Registry) Find(ctx context.Context, key site.Place, id string) (*Device, error) {
	devices, err := q.Of(ctx, key)
	if err != nil {
		return nil, err
	}
	if d := devices.Find(id); d != nil || !q.outbox.Shared {
		return d, nil
	}
	if err := q.Read(ctx); err != nil {
		return nil, err
	}
	return q.Known(key).Find(id), nil
}

// Authenticate returns a device of a key if secret is its secret. Otherwise the error is [ErrNone],
// also for a wrong secret, so that nobody learns which devices exist.
func (q *Registry) Authenticate(ctx context.Context, key site.Place, id, secret string) (*Device, error) {
	d, err := q.Find(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if d == nil || !d.HasSecret(secret) {
		return nil, ErrNone
	}
	return d, nil
}

// List returns the devices of a key as clients see them, never nil.
func (q *Registry) List(ctx context.Context, key site.Place) ([]JSON, error) {
	devices, err := q.Of(ctx, key)
	if err != nil || devices == nil {
		return []JSON{}, err
	}
	states, err := q.States(ctx, devices.All)
	if err != nil {
		return nil, err
	}
	out := make([]JSON, len(devices.All))
	for i := range devices.All {
		out[i] = devices.All[i].JSON(states[i])
	}
	return out, nil
}

// States returns the states of devices, in the same order.
func (q *Registry) States(ctx context.Context, devices []Device) ([]*State, error) {
	out := make([]*State, len(devices))
	for i := range devices {
		b, err := q.outbox.Queue.Records.Get(ctx, q.Records.state(devices[i].ID))
		if err != nil {
			return nil, err
		}
		out[i] = states.DecodeOrNew(b)
	}
	return out, nil
}

// Subscription is a client's request to subscribe a device to a key.
type Subscription struct {
	Key  *site.Key
	Site SiteSettings // of the site that got the request

	Change        // a name and a subscription at least
	Invite string // the token of an invitation to the key; "" if it needs none
	By     string // the user who subscribes; "" if nobody is known
}

// Subscribe adds a device to a key, and tells the key. It returns the device with its secret, which
// cannot be read later. The error is [ErrTooMany], [ErrInvitation] or about a tag if the device is
// refused.
func (q *Registry) Subscribe(ctx context.Context, s *Subscription) (d *Device, secret string, err error) {
	if _, err := q.PushKey(ctx); err != nil { // no device can get a message without it
		return nil, "", err
	}
	secret = NewSecret()
	place := s.Key.Place(s.Site.Site)
	var others []queue.Hash // records to remove
	if s.Invite != "" {
		others = append(others, q.Records.invitation(s.Invite))
	}
	before, err := q.Of(ctx, place)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, "", err
	}
	for _, o := range before.at(s.Subscription.Endpoint) { // the new device replaces these
		others = append(others, q.Records.state(o.ID))
	}
	err = q.Update(ctx, place, true, others, func(tx *queue.Tx, now time.Time, l *List) error {
		d = newDevice(secret)
		d.By, d.Created = s.By, now
		if s.Invite != "" {
			invitation := invitations.Get(tx, others[0])
			if err := invitation.check(place, now); err != nil {
				return err
			}
			d.Granted = invitation.Tags
		}
		for _, name := range others {
			tx.Delete(name)
		}
		return l.add(d, &s.Change, numberedTags(s.Key), s.Site.Settings.Push.Max)
	})
	if err != nil {
		return nil, "", err
	}
	conf := q.outbox.Current()
	q.changed(conf, added, s.Key.Name, d.Name, d.By)
	q.tell(ctx, conf, s.Site, place, d.ID, d.added(), nil)
	return d, secret, nil
}

// Change changes the settings of a device, and returns the device. siteID names the site that got
// the request. The error is [ErrNone] if there is no such device, or about a tag.
func (q *Registry) Change(ctx context.Context, k *site.Key, siteID, id string, c *Change) (d *Device, err error) {
	err = q.Update(ctx, k.Place(siteID), false, nil, func(_ *queue.Tx, _ time.Time, l *List) (err error) {
		d, err = l.change(id, c, numberedTags(k))
		return err
	})
	return d, err
}

// Confirm notes that a device of a key has received the message in the token of a push, and returns
// the device. The error is [ErrNone] if the gateway has not made the token for this device.
func (q *Registry) Confirm(ctx context.Context, key site.Place, id, token string) (*Device, error) {
	of, ok := q.Receipts.checkToken(id, token)
	if !ok {
		return nil, ErrNone
	}
	d, err := q.Find(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, ErrNone
	}
	return d, q.Receipts.received(context.WithoutCancel(ctx), key, d, of)
}

// SetReceived sets in m when devices have confirmed the message of e. Devices that are gone are
// left out.
func (q *Registry) SetReceived(ctx context.Context, e *queue.Entry, m *message.QueuedMessage) {
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || s.At == (site.Place{}) {
		return
	}
	devices, err := q.Of(ctx, s.At)
	if err != nil || devices == nil {
		return // m is shown without these times
	}
	for i := range devices.All {
		x, err := receipts.Read(ctx, q.outbox, q.Records.Receipt(Hash(devices.All[i].ID), m.ID))
		if err != nil {
			return
		}
		if x == nil || x.Received.IsZero() {
			continue
		}
		at := x.Received.UTC()
		for i := range m.Results {
			if m.Results[i].Destination == site.DeviceScheme+x.Name && m.Results[i].Status == notifier.Delivered {
				m.Results[i].Received = &at
			}
		}
	}
}

// Remove removes a device of a key, and returns it. by is the user who asks; "" if unknown. It goes
// on if the client disconnects. The error is a [*message.Error]: [ErrUnknown] if there is no such
// device.
func (q *Registry) Remove(ctx context.Context, key site.Place, id, by string) (*Device, error) {
	d, err := q.remove(context.WithoutCancel(ctx), key, id, func(*Device) bool { return true })
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	conf := q.outbox.Current()
	q.changed(conf, removed, conf.NameOf(ctx, key), d.Name, by)
	return d, nil
}

// Forget removes the devices of a key that was deleted.
func (q *Registry) Forget(ctx context.Context, _ *outbox.Configuration, of site.Place, by string) error {
	_, err := q.RemoveAll(ctx, of, by)
	return err
}

// RemoveAll removes all devices of a key as Remove does, and returns the devices that could be read.
func (q *Registry) RemoveAll(ctx context.Context, key site.Place, by string) (all []*Device, err error) {
	ctx = context.WithoutCancel(ctx)
	l, err := q.Of(ctx, key)
	if errors.Is(err, ErrDamaged) {
		return nil, q.removeDamaged(ctx, key)
	}
	if err != nil || l == nil {
		return nil, err
	}
	for i := range l.All { // each with its state
		d, err := q.Remove(ctx, key, l.All[i].ID, by)
		if err == nil {
			all = append(all, d)
		} else if !errors.Is(err, ErrUnknown) {
			return all, err
		}
	}
	return all, nil
}

// remove removes a device of a key, with its state, and returns it. The error is [ErrUnknown] if
// there is none, or if allowed returns false for it.
func (q *Registry) remove(ctx context.Context, key site.Place, id string, allowed func(*Device) bool) (d *Device, err error) {
	state := q.Records.state(id)
	err = q.Update(ctx, key, false, []queue.Hash{state}, func(tx *queue.Tx, _ time.Time, l *List) (err error) {
		tx.Delete(state)
		d, err = l.remove(id, allowed)
		return err
	})
	return d, err
}

// removeDamaged removes the record of devices of a key if it cannot be read.
func (q *Registry) removeDamaged(ctx context.Context, key site.Place) error {
	err := q.apply(ctx, key, false, nil, func(_ *queue.Tx, _ time.Time, record []byte) (*List, error) {
		l, err := decodeDevices(record)
		if err != nil {
			l = new(List)
		}
		return l, nil // another gateway may have restored them meanwhile
	})
	if err == nil {
		q.outbox.Log.Warn("devices that cannot be read are removed", zap.String("key", q.outbox.Current().NameOf(ctx, key)))
	}
	return err
}

// Update changes the devices of a key. f gets the transaction, and can use the records named by
// others, too. adds means that f adds a device, which needs room in the queue. f may be called
// several times. A record that cannot be read is not overwritten: another version of the gateway
// may be able to read it.
func (q *Registry) Update(ctx context.Context, key site.Place, adds bool, others []queue.Hash,
	f func(tx *queue.Tx, now time.Time, l *List) error,
) error {
	return q.apply(ctx, key, adds, others, func(tx *queue.Tx, now time.Time, record []byte) (*List, error) {
		l, err := decodeDevices(record)
		if err != nil {
			return nil, ErrDamaged
		}
		l.Place = key
		return l, f(tx, now, l)
	})
}

// apply stores the devices that f returns. f gets the present record, and can use the records named
// by others.
func (q *Registry) apply(ctx context.Context, key site.Place, adds bool, others []queue.Hash,
	f func(tx *queue.Tx, now time.Time, record []byte) (*List, error),
) error {
	version, devices := q.Records.Version(), q.Records.Devices(key)
	change := &queue.Ruled{Names: append([]queue.Hash{version, devices}, others...), Adds: adds, Decide: func(tx *queue.Tx) error {
		now := q.outbox.Queue.Now()
		l, err := f(tx, now, tx.Get(devices))
		if err != nil {
			return err
		}
		tx.Put(version, q.Records.NewVersion(now))
		q.Records.putDevices(tx, devices, l, now)
		return nil
	}}
	place := key.String()
	// A client can make its device larger, too.
	if err := q.outbox.Apply(ctx, q.Invitations.usage.Ruled(place, false, q.usage.Ruled(place, true, change))); err != nil {
		return err
	}
	if err := q.Read(ctx); err != nil {
		q.known.now.Store(nil) // they are read when the store answers
	}
	return nil
}

// ErrDamaged is returned for devices of a key that are in the store, but cannot be read.
var ErrDamaged = brokenError("the devices of this key cannot be read; the log of the gateway tells its operator why",
	"the devices of the key cannot be read in the queue's store, so that they get no messages and none can be added; a later version of "+
		"the gateway may have written them: start that one, restore a back-up of the queue (caddy notify queue backup), or remove them with "+
		"caddy notify devices revoke <key> --all and invite the phones again")

// brokenError returns an error with one text for clients and another, fault, for the operator.
func brokenError(text, fault string) *message.Error {
	return &message.Error{Kind: message.Unavailable, Err: errors.New(text), Fault: errors.New(fault)}
}

// Who may subscribe a device without an invitation, besides everybody.
const (
	DevicesInvited = "invited" // nobody
	DevicesUsers   = "users"   // those who are signed in
)

// MaxMaxDevices is the upper bound of how many devices a key can have.
const MaxMaxDevices = 500
