package caddyhttp

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/queued"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A push service says that it has taken a message, not that a device has it. The device
// says so itself with a receipt. Each message that was pushed to a device has a record,
// which waits for that.
const kindReceipt = 'r'

// receiptTime is how long a device may take for a receipt before it counts as one that
// does not have the message.
const receiptTime = time.Minute

// receipt is what is known of one message to one device.
type receipt struct {
	Device, Name string // ID and name of the device
	Home, Key    string // see [delivery.place]
	Message      uuid.UUID
	Target       string    // the hash of the destination
	Began, Sent  time.Time // when the last push of it began, and when the push service took that
	Received     time.Time // when the device confirmed it first; zero if it has not
	Last         time.Time // when the device confirmed it last
	Checked      bool      // the time for it is over
}

// The fields of a receipt.
const (
	receiptDevice wire.Field = iota + 1
	receiptName
	receiptHome
	receiptKey
	receiptMessage
	receiptTarget
	receiptSent
	receiptReceived
	receiptChecked
	receiptBegan
	receiptLast
)

func (x *receipt) encode() []byte {
	b := wire.AppendText(wire.AppendText(nil, receiptDevice, x.Device), receiptName, x.Name)
	b = wire.AppendText(wire.AppendText(b, receiptHome, x.Home), receiptKey, x.Key)
	b = wire.AppendText(wire.AppendText(b, receiptMessage, x.Message[:]), receiptTarget, x.Target)
	b = wire.AppendTime(wire.AppendTime(b, receiptSent, x.Sent), receiptReceived, x.Received)
	b = wire.AppendTime(wire.AppendTime(b, receiptBegan, x.Began), receiptLast, x.Last)
	return wire.AppendTrue(b, receiptChecked, x.Checked)
}

// answered reports whether the device has confirmed the last push. A step of a later round
// pushes a message again.
func (x *receipt) answered() bool { return !x.Last.IsZero() && !x.Last.Before(x.Began) }

// confirms reports whether the device has the message, and whether that is known: it may
// still confirm it. x may be nil.
func (x *receipt) confirms(now time.Time) (received, known bool) {
	if x == nil {
		return false, false
	}
	received = x.answered()
	return received, received || !x.Sent.Add(receiptTime).After(now)
}

// decodeReceipt returns the receipt in a record, or nil for none and for a damaged one.
func decodeReceipt(record []byte) *receipt {
	if len(record) == 0 || record[0] != kindReceipt {
		return nil
	}
	x := new(receipt)
	r := wire.NewReader(record[1:])
	for r.Next() {
		switch r.Field {
		case receiptDevice:
			x.Device = r.Text()
		case receiptName:
			x.Name = r.Text()
		case receiptHome:
			x.Home = r.Text()
		case receiptKey:
			x.Key = r.Text()
		case receiptMessage:
			copy(x.Message[:], r.Bytes())
		case receiptTarget:
			x.Target = r.Text()
		case receiptSent:
			x.Sent = r.Time()
		case receiptReceived:
			x.Received = r.Time()
		case receiptChecked:
			x.Checked = r.Bool()
		case receiptBegan:
			x.Began = r.Time()
		case receiptLast:
			x.Last = r.Time()
		}
	}
	if r.Err() != nil {
		return nil
	}
	return x
}

// receiptRecordName returns the name of the record of a message to the destination with a
// hash.
func (q *openQueue) receiptRecordName(target, message string) queue.Hash {
	return q.Hash("receipt\x00" + target + "\x00" + message)
}

// receiptGroup returns the group of the receipts for a message.
func (q *openQueue) receiptGroup(message string) queue.Hash { return q.Hash("receipts\x00" + message) }

// receiptRecord returns the record of a receipt, which is kept as long as results are.
func (q *openQueue) receiptRecord(x *receipt) queue.Record {
	due := x.Sent.Add(receiptTime)
	if x.Checked {
		due = x.Sent.Add(q.app.Load().queueSettings.keep)
	}
	return queue.Record{Data: encodeRecord(kindReceipt, x.encode()), Due: due, Group: q.receiptGroup(x.Message.String())}
}

// keepReceipt returns a stored receipt as it is.
func (q *openQueue) keepReceipt(old []byte) queue.Record {
	x := decodeReceipt(old)
	if x == nil {
		return queue.Record{}
	}
	return q.receiptRecord(x)
}

// receiptToken returns the token by which a device confirms a message: the ID of the
// message, and a hash that only the gateway can make.
func (q *openQueue) receiptToken(device, message string) string {
	sum := q.Hash("receipt token\x00" + device + "\x00" + message)
	return message + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkReceiptToken returns the ID of the message that a token is for, and reports whether
// the gateway has made it for the device.
func (q *openQueue) checkReceiptToken(device, token string) (message string, ok bool) {
	message, _, _ = strings.Cut(token, ".")
	return message, subtle.ConstantTimeCompare([]byte(token), []byte(q.receiptToken(device, message))) == 1
}

// pushed notes that a push service has taken a message for the device. began is when the
// push began.
func (d *deviceService) pushed(ctx context.Context, m *notifier.Message, began time.Time) error {
	id, err := uuid.Parse(m.ID)
	if err != nil {
		return err
	}
	q := d.queue
	names := []queue.Hash{q.receiptRecordName(deviceHash(d.device.ID), m.ID), q.deviceStateName(d.device.ID)}
	return q.Apply(ctx, &queue.Ruled{Names: names, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Now()
		x := &receipt{Device: d.device.ID, Name: d.device.Name, Home: d.home, Key: d.key, Message: id, Target: deviceHash(d.device.ID), Began: began, Sent: now}
		if before := decodeReceipt(old[0]); before != nil {
			x.Received, x.Last = before.Received, before.Last // of an earlier push, or it was faster than this
		}
		s := decodeDeviceState(old[1])
		s.ID, s.Name, s.Home, s.Key, s.Created, s.Sent = d.device.ID, d.device.Name, d.home, d.key, d.device.Created, now
		return &queue.RuledChange{Records: []queue.Record{q.receiptRecord(x), q.deviceStateRecord(s, now)}}, nil
	}})
}

// received notes that a device has confirmed a message.
func (q *openQueue) received(ctx context.Context, home, key string, d *device, message string) error {
	id, err := uuid.Parse(message)
	if err != nil {
		return err
	}
	var x *receipt
	names := []queue.Hash{q.receiptRecordName(deviceHash(d.ID), message), q.deviceStateName(d.ID)}
	err = q.Apply(ctx, &queue.Ruled{Names: names, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now := q.Now()
		x = decodeReceipt(old[0])
		if x == nil { // the device was faster than the answer of the push service
			x = &receipt{Device: d.ID, Name: d.Name, Home: home, Key: key, Message: id, Target: deviceHash(d.ID), Began: now, Sent: now}
		}
		if x.Received.IsZero() {
			x.Received = now
		}
		x.Last = now
		s := decodeDeviceState(old[1])
		s.ID, s.Name, s.Home, s.Key, s.Created = d.ID, d.Name, home, key, d.Created
		s.confirm(now)
		return &queue.RuledChange{Records: []queue.Record{q.receiptRecord(x), q.deviceStateRecord(s, now)}}, nil
	}})
	if err != nil {
		return err
	}
	return q.confirmStep(ctx, x)
}

// dueReceipt counts a receipt that is missing, and removes one that is old.
func (q *openQueue) dueReceipt(ctx context.Context, name queue.Hash, before *receipt) error {
	if before != nil && !before.Checked && !before.Sent.Add(receiptTime).After(q.Now()) {
		if err := q.confirmStep(ctx, before); err != nil {
			return err
		}
	}
	names := []queue.Hash{name}
	if before != nil {
		names = append(names, q.deviceStateName(before.Device))
	}
	return q.Apply(ctx, &queue.Ruled{Names: names, Decide: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		now, x := q.Now(), decodeReceipt(old[0])
		c := &queue.RuledChange{Records: make([]queue.Record, len(names))}
		if x == nil || len(names) == 1 {
			return c, nil
		}
		s := decodeDeviceState(old[1])
		switch {
		case !x.Checked && !x.Sent.Add(receiptTime).After(now):
			x.Checked = true
			if !x.answered() && s.ID != "" && x.Sent.After(s.Seen) {
				s.Missing++
			}
		case x.Checked && !x.Sent.Add(q.app.Load().queueSettings.keep).After(now):
			x = nil
		}
		if x != nil {
			c.Records[0] = q.receiptRecord(x)
		}
		if s.ID != "" {
			c.Records[1] = q.deviceStateRecord(s, now)
		}
		return c, nil
	}})
}

// confirmStep tells the incident of a message, if it escalates, whether the device has
// confirmed it.
func (q *openQueue) confirmStep(ctx context.Context, x *receipt) error {
	e, err := q.Get(ctx, x.Message)
	if err != nil {
		return ignoreNotFound(err)
	}
	i := slices.IndexFunc(e.Jobs, func(j queue.Job) bool { return hashOfDestination(j.Destination) == x.Target })
	if i < 0 || len(e.Jobs[i].Ruled) == 0 {
		return nil
	}
	r, err := queued.DecodeRuled(e.Jobs[i].Ruled)
	if err != nil || r.Step == 0 {
		return nil //nolint:nilerr // the record of the message is damaged; the steps go on by time
	}
	_, err = q.changeIncident(ctx, r.Incident, func(p *incidentChange, _ *queue.RuledChange, _ func(queue.JobID) queue.Status) bool {
		if p.x != nil && p.x.ID == r.Opening {
			p.x.Confirmed(q.Now(), x.Message, x.Target, r.Step, x.answered())
		}
		return p.x != nil
	})
	return err
}

// setReceipts sets when devices have confirmed a message.
func (q *openQueue) setReceipts(ctx context.Context, m *api.QueuedMessage) {
	if !slices.ContainsFunc(m.Results, func(r api.QueuedResult) bool { return isDevice(r.Destination) }) {
		return
	}
	records, err := q.CallersGroup(ctx, q.receiptGroup(m.ID), queue.Hash{}, maxMaxDevices)
	if err != nil {
		return // the message can be shown without them
	}
	for _, r := range records {
		x := decodeReceipt(r.Data)
		if x == nil || x.Received.IsZero() {
			continue
		}
		at := x.Received.UTC()
		for i := range m.Results {
			if m.Results[i].Destination == deviceScheme+x.Name && m.Results[i].Status == notifier.Delivered {
				m.Results[i].Received = &at
			}
		}
	}
}
