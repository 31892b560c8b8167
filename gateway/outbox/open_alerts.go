package outbox

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// alertRecord is the record of an open alert.
type alertRecord struct {
	place string    // of the key
	alert []byte    // as package dispatch knows it
	until time.Time // it is forgotten
}

func (x *alertRecord) fields(c *wire.Codec) {
	wire.Text(c, 1, &x.place)
	wire.Bytes(c, 2, &x.alert)
	wire.Time(c, 3, &x.until)
}

var alertRecords = Typed[alertRecord]{KindOpenAlert, (*alertRecord).fields}

// NewOpenAlerts returns the open alerts that the queue keeps. Beyond what a key may have, the
// oldest are forgotten, so that a repetition of one is told.
func (q *Outbox) NewOpenAlerts() *dispatch.OpenAlerts {
	group := func(place string) queue.Hash { return q.Queue.Hash("open alerts\x00" + place) } // of a key
	usage := q.NewMemory(KindOpenAlert, group, func(record []byte) (until time.Time) {
		return alertRecords.DecodeOrNew(record).until
	}, func([]byte) (none queue.Record) { return none })
	return dispatch.NewStoredAlerts(dispatch.AlertStore{
		At: func(t time.Time) time.Time { return q.Queue.At(t) },
		Change: func(ctx context.Context, id dispatch.AlertID, change func([]byte) ([]byte, time.Time)) error {
			name := q.Queue.Hash("open alert\x00" + id.Incident)
			return q.Apply(ctx, usage.Ruled(id.Place, true, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
				x := alertRecords.Get(tx, name)
				if x == nil {
					x = &alertRecord{place: id.Place}
				}
				if x.alert, x.until = change(x.alert); x.alert != nil {
					alertRecords.Put(tx, name, x, KindOpenAlert.Due(x.until, q.Queue.Now()), group(id.Place))
				} else {
					tx.Delete(name)
				}
				return nil
			}}))
		},
	})
}

// errAlertChanged is returned when an open alert is not any more as it was read.
var errAlertChanged = fmt.Errorf("the open alert: %w", queue.ErrChanged)

// dueOpenAlert forgets an alert.
func (q *Outbox) dueOpenAlert(ctx context.Context, name queue.Hash, data []byte) error {
	x := alertRecords.Decode(data)
	if x == nil {
		return q.RemoveRecord(ctx, name)
	}
	return q.Apply(ctx, q.usages[KindOpenAlert].Ruled(x.place, false,
		&queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			if !bytes.Equal(tx.Get(name), data) {
				return errAlertChanged
			}
			tx.Delete(name)
			return nil
		}}))
}
