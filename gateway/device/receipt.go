package device

import (
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// receiptTime is how long a device may take to confirm a message before the message counts as not
// received.
const receiptTime = time.Minute

// Receipt records whether a device has received a message. A push service only confirms that it has
// taken the message; the device itself confirms that it has it.
type Receipt struct {
	Device, Name string // ID and name of the device
	site.Place

	Message     uuid.UUID
	Target      string    // the hash of the destination
	Began, Sent time.Time // when the last push of it began, and when the push service took that
	Received    time.Time // when the device confirmed it first; zero if it has not
	Last        time.Time // when the device confirmed it last
	Checked     bool      // the time for it is over
}

// newReceipt returns the unconfirmed receipt for a push of a message to d.
func (d *Device) newReceipt(of site.Place, message uuid.UUID, began, sent time.Time) *Receipt {
	return &Receipt{Device: d.ID, Name: d.Name, Place: of, Message: message, Target: Hash(d.ID), Began: began, Sent: sent}
}

// pushed returns the receipt for a message after the push service has taken it. before is the
// receipt so far, or nil.
func (d *Device) pushed(of site.Place, message uuid.UUID, before *Receipt, began, now time.Time) *Receipt {
	x := d.newReceipt(of, message, began, now)
	if before != nil { // of an earlier push, or the device was faster than the push service
		x.Received, x.Last = before.Received, before.Last
	}
	return x
}

// confirmed returns the receipt for a message after the device has confirmed it. before is the
// receipt so far, or nil if the device was faster than the answer of the push service.
func (d *Device) confirmed(of site.Place, message uuid.UUID, before *Receipt, now time.Time) *Receipt {
	x := before
	if x == nil {
		x = d.newReceipt(of, message, now, now)
	}
	if x.Received.IsZero() {
		x.Received = now
	}
	x.Last = now
	return x
}

// answered reports whether the device has confirmed the last push. A step of a later round
// pushes a message again.
func (x *Receipt) answered() bool { return !x.Last.IsZero() && !x.Last.Before(x.Began) }

// confirms reports whether the device has the message. known is false while the device may still
// confirm it. x may be nil.
func (x *Receipt) confirms(now time.Time) (received, known bool) {
	if x == nil {
		return false, false
	}
	received = x.answered()
	return received, received || x.late(now)
}

// late reports whether the time for the receipt is over.
func (x *Receipt) late(now time.Time) bool { return !x.Sent.Add(receiptTime).After(now) }

// overdue reports whether the receipt is late and [Receipt.expire] has not noted that yet.
func (x *Receipt) overdue(now time.Time) bool { return !x.Checked && x.late(now) }

// due returns when [Receipt.expire] has to be called next. The receipt is kept for keep.
func (x *Receipt) due(keep time.Duration) time.Time {
	if x.Checked {
		return x.Sent.Add(keep)
	}
	return x.Sent.Add(receiptTime)
}

// expire counts a late receipt as missing in s, and reports whether the receipt is kept longer.
func (x *Receipt) expire(s *State, keep time.Duration, now time.Time) (kept bool) {
	switch {
	case x.overdue(now):
		x.Checked = true
		if !x.answered() && x.Sent.After(s.Seen) {
			s.Missing++
		}
	case x.Checked && !x.due(keep).After(now):
		return false
	}
	return true
}

func (x *Receipt) fields(c *wire.Codec) {
	wire.Text(c, 1, &x.Device)
	wire.Text(c, 2, &x.Name)
	wire.Text(c, 3, &x.Home)
	wire.Text(c, 4, &x.Key)
	wire.Array(c, 5, x.Message[:])
	wire.Text(c, 6, &x.Target)
	wire.Time(c, 7, &x.Sent)
	wire.Time(c, 8, &x.Received)
	wire.True(c, 9, &x.Checked)
	wire.Time(c, 10, &x.Began)
	wire.Time(c, 11, &x.Last)
}
