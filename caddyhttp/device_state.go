package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/events"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// kindDeviceState begins the record of what is known of a device, which changes with each
// message.
const kindDeviceState = 'e'

// When a key is told that a device does not answer.
const (
	maxMissing = 3                   // receipts in a row
	unseenTime = 14 * 24 * time.Hour // in which something was sent
)

// deviceState is what is known of a device.
type deviceState struct {
	ID, Name  string
	Home, Key string // see [delivery.place]
	Created   time.Time
	Sent      time.Time // the last push that a push service has taken; zero for none
	Seen      time.Time // the last receipt; zero for none
	Missing   int       // receipts in a row
	Told      bool      // the key was told that the device does not answer
}

// The fields of a deviceState.
const (
	stateDeviceID wire.Field = iota + 1
	stateDeviceName
	stateDeviceHome
	stateDeviceKey
	stateDeviceCreated
	stateDeviceSent
	stateDeviceSeen
	stateDeviceMissing
	stateDeviceTold
)

func (s *deviceState) encode() []byte {
	b := wire.AppendText(wire.AppendText(nil, stateDeviceID, s.ID), stateDeviceName, s.Name)
	b = wire.AppendText(wire.AppendText(b, stateDeviceHome, s.Home), stateDeviceKey, s.Key)
	b = wire.AppendTime(wire.AppendTime(b, stateDeviceCreated, s.Created), stateDeviceSent, s.Sent)
	b = wire.AppendTime(b, stateDeviceSeen, s.Seen)
	return wire.AppendTrue(wire.AppendNumber(b, stateDeviceMissing, s.Missing), stateDeviceTold, s.Told)
}

// decodeDeviceState returns the state in a record. It has no ID if there is none, or a
// damaged one.
func decodeDeviceState(record []byte) *deviceState {
	s := new(deviceState)
	if len(record) == 0 || record[0] != kindDeviceState {
		return s
	}
	r := wire.NewReader(record[1:])
	for r.Next() {
		switch r.Field {
		case stateDeviceID:
			s.ID = r.Text()
		case stateDeviceName:
			s.Name = r.Text()
		case stateDeviceHome:
			s.Home = r.Text()
		case stateDeviceKey:
			s.Key = r.Text()
		case stateDeviceCreated:
			s.Created = r.Time()
		case stateDeviceSent:
			s.Sent = r.Time()
		case stateDeviceSeen:
			s.Seen = r.Time()
		case stateDeviceMissing:
			s.Missing = r.Int()
		case stateDeviceTold:
			s.Told = r.Bool()
		}
	}
	if r.Err() != nil {
		return new(deviceState)
	}
	return s
}

// confirm notes a receipt.
func (s *deviceState) confirm(now time.Time) { s.Seen, s.Missing, s.Told = now, 0, false }

// last returns when the device was seen last, or when it subscribed.
func (s *deviceState) last() time.Time {
	if s.Seen.After(s.Created) {
		return s.Seen
	}
	return s.Created
}

// silent reports whether the key has to be told that the device does not answer.
func (s *deviceState) silent(now time.Time) bool {
	return !s.Told && (s.Missing >= maxMissing || s.Sent.After(s.last()) && !s.last().Add(unseenTime).After(now))
}

// due returns when something has to be done about the device.
func (s *deviceState) due(now time.Time) time.Time {
	switch {
	case s.Told:
	case s.Missing >= maxMissing:
		return now
	case s.Sent.After(s.last()):
		return s.last().Add(unseenTime)
	}
	return farAway(now)
}

// deviceHash returns the hash of the destination of a device.
func deviceHash(id string) string {
	return notifier.PrivateHash(id)
}

func (q *openQueue) deviceStateName(id string) queue.Hash { return q.Hash("device state\x00" + id) }

func (q *openQueue) deviceStateRecord(s *deviceState, now time.Time) queue.Record {
	return queue.Record{Data: encodeRecord(kindDeviceState, s.encode()), Due: s.due(now)}
}

// deviceStates returns what is known of devices, in the same order.
func (q *openQueue) deviceStates(ctx context.Context, devices []*device) ([]*deviceState, error) {
	out := make([]*deviceState, len(devices))
	for i, d := range devices {
		b, err := q.CallersRecord(ctx, q.deviceStateName(d.ID))
		if err != nil {
			return nil, err
		}
		out[i] = decodeDeviceState(b)
	}
	return out, nil
}

// isDeviceKind reports whether a record is about devices.
func isDeviceKind(kind byte) bool {
	switch kind {
	case kindDevices, kindDevicesVersion, kindDeviceState, kindInvitation, kindReceipt, kindPushKey:
		return true
	}
	return false
}

// dueDevice does what is due in a record about devices.
func (q *openQueue) dueDevice(ctx context.Context, name queue.Hash, data []byte, crowded bool) error {
	switch data[0] {
	case kindReceipt:
		x := decodeReceipt(data)
		if crowded && x != nil && !x.Checked {
			return nil
		}
		if crowded {
			x = nil // the oldest go first
		}
		return q.dueReceipt(ctx, name, x)
	case kindDeviceState:
		if crowded {
			return nil
		}
		return q.dueDeviceState(ctx, name, decodeDeviceState(data))
	case kindInvitation:
		if x := decodeInvitation(data); crowded && x != nil && x.Until.After(q.Now()) {
			return nil
		}
		return q.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func([][]byte, func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
			return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
		}})
	}
	return nil
}

// dueDeviceState tells a key that one of its devices does not answer. It removes the state
// of a device that is gone.
func (q *openQueue) dueDeviceState(ctx context.Context, name queue.Hash, before *deviceState) error {
	devices, err := q.devicesOf(ctx, before.Home+"\x00"+before.Key)
	if err != nil {
		return err
	}
	d := devices.find(before.ID)
	told := false
	change := &queue.Ruled{Names: []queue.Hash{name}, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now, s := q.Now(), decodeDeviceState(old[0])
		c := &queue.RuledChange{Records: make([]queue.Record, 1)}
		if d == nil || s.ID == "" {
			return c, nil
		}
		if told = s.silent(now); told {
			s.Told = true
		}
		c.Records[0] = q.deviceStateRecord(s, now)
		return c, nil
	}}
	if d == nil || !before.silent(q.Now()) {
		return q.Apply(ctx, change)
	}
	stored := q.tellOfDevice(ctx, nil, before.Home, before.Key, before.ID, textOfSilent(d.Name, before), change)
	if !stored {
		if err := q.Apply(ctx, change); err != nil {
			return err
		}
	}
	if told {
		q.deviceChanged(deviceSilent, before.Key, d.Name, "")
	}
	return nil
}

// What happens to a device.
const (
	deviceAdded   = "added"
	deviceRemoved = "removed"
	deviceGone    = "gone"   // its browser has ended the subscription
	deviceSilent  = "silent" // it does not answer
)

// deviceChanged writes a line and emits an event about a device. by is who made the
// change; "" if nobody is known.
func (q *openQueue) deviceChanged(change, key, name, by string) {
	app := q.app.Load()
	app.log.Info("device "+change, zap.String("key", key), zap.String("device", name), zap.String("who", by))
	app.emitter.emit(events.Device, func() map[string]any {
		return map[string]any{"change": change, "key": key, "device": name, "by": by}
	})
}

func textOfAdded(name, by string) *notifier.Message {
	body := "From now on it gets the messages for this key. If you do not know it, revoke it."
	if by != "" {
		body = by + " has added it. " + body
	}
	return &notifier.Message{Title: "New device: " + name, Body: body, Type: notifier.Info}
}

func textOfGone(name string) *notifier.Message {
	return &notifier.Message{
		Title: "Device gone: " + name, Type: notifier.Warning,
		Body: "Its browser has ended the subscription, so that it was removed and gets no more messages. If that was not intended, invite it again.",
	}
}

func textOfSilent(name string, s *deviceState) *notifier.Message {
	body := fmt.Sprintf("It has confirmed none of the last %d messages.", s.Missing)
	if s.Missing < maxMissing {
		body = fmt.Sprintf("It has confirmed no message since %s, and there were some.", formatDay(s.last()))
	}
	return &notifier.Message{
		Title: "No answer from " + name, Type: notifier.Warning,
		Body: body + " It may be off, or does not show notifications any more. Open the page of the key on it, or revoke it.",
	}
}

// tellOfDevice stores a message to a key about a device, which does not get it, and makes
// a change in the same transaction. It reports whether it has done so: the key may have no
// other destination, or be gone.
func (q *openQueue) tellOfDevice(ctx context.Context, at *keyDevices, home, key, id string, m *notifier.Message, with *queue.Ruled) bool {
	app := q.app.Load()
	settings, site := app.settingsOfKey(ctx, home, key)
	if settings == nil && at != nil {
		settings = at.settings
		site = at.app.siteOf(settings)
	}
	if settings == nil {
		return false
	}
	k, err := settings.key(ctx, key)
	if err != nil {
		return false
	}
	var targets []notifier.Target
	for _, t := range k.defaultTargets {
		if t.Hash() != deviceHash(id) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 && k.inbox == 0 {
		return false
	}
	m.Format, m.Foreign = markup.Text, true // the name is that of a client
	d := newDelivery(settings, sourceDevice, site, m, &api.Selection{Targets: targets}).toKey(k)
	d.rules, d.with = nil, with // it is sent at once
	s := newQueuedSend(d, q, app.shared.shared)
	s.makeEntry(s.resultsSoFar())
	s.entry.Unlimited = true
	if err := q.Accept(ctx, s.entry); err != nil {
		q.log.Warn("a key cannot be told what happens to its device", zap.String("key", key), zap.Error(err))
		return false
	}
	return true
}

// settingsOfKey returns the settings that have a key with a home, and the ID of their
// site; nil if it is gone.
func (a *App) settingsOfKey(ctx context.Context, home, key string) (*resolved, string) {
	for _, s := range append([]*resolved{a.resolved}, a.sites...) {
		site := a.siteOf(s)
		k, err := s.key(ctx, key)
		if err == nil && k.home(site) == home {
			return s, site
		}
	}
	return nil, ""
}

// ignoreNotFound returns err, or nil if it is about a message that is not there any more.
func ignoreNotFound(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}

// openIncidents returns how many incidents of the key with a place are open, or nil if it
// is not known.
func (q *openQueue) openIncidents(ctx context.Context, place string) *int {
	n := 0
	for _, stage := range []notifier.IncidentState{notifier.Open, notifier.Acknowledged} {
		records, err := q.CallersGroup(ctx, q.incidentGroup(place, stage), queue.Hash{}, maxBadge)
		if err != nil {
			return nil
		}
		n += len(records)
	}
	n = min(n, maxBadge)
	return &n
}

// maxBadge is the greatest number on the icon of a device.
const maxBadge = 99

// errDeviceStatus returns err with its status for clients.
func errDeviceStatus(err error) error {
	switch {
	case errors.Is(err, errPushKeyLost):
		return api.Errorf(http.StatusServiceUnavailable, "no device can be added at the moment; the log of the gateway tells its operator why")
	case errors.Is(err, errNoInvitation):
		return &api.Error{Status: http.StatusForbidden, Err: err}
	case errors.Is(err, errTooManyDevices):
		return &api.Error{Status: http.StatusConflict, Err: err}
	case errors.Is(err, errDeviceUnknown):
		return &api.Error{Status: http.StatusNotFound, Err: err}
	case errors.Is(err, errNoDevice):
		return &api.Error{Status: http.StatusUnauthorized, Err: err}
	case errors.Is(err, queue.ErrClosed):
		return errQueueUnavailable(err)
	}
	return queueError(err)
}
