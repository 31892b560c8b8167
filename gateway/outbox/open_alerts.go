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

func decodeAlert(record []byte) *alertRecord {
	return DecodeKind(KindOpenAlert, record, func(b []byte) (*alertRecord, error) {
		x := new(alertRecord)
		return x, wire.Decode(b, x, (*alertRecord).fields)
	})
}

// alertsGroup returns the group of the open alerts of the key with a place.
func (q *Outbox) alertsGroup(place string) queue.Hash {
	return q.Queue.Hash("open alerts\x00" + place)
}

// NewOpenAlerts returns the open alerts that the queue keeps. Beyond what a key may have, the
// oldest are forgotten, so that a repetition of one is told.
func (q *Outbox) NewOpenAlerts() *dispatch.OpenAlerts {
	usage := q.NewMemory(KindOpenAlert, q.alertsGroup, func(record []byte) (until time.Time) {
		if x := decodeAlert(record); x != nil {
			until = x.until
		}
		return until
	}, func([]byte) (none queue.Record) { return none })
	return dispatch.NewStoredAlerts(dispatch.AlertStore{
		At: func(t time.Time) time.Time { return q.Queue.At(t) },
		Change: func(ctx context.Context, id dispatch.AlertID, change func([]byte) ([]byte, time.Time)) error {
			return q.Apply(ctx, usage.Ruled(id.Place, true, &queue.Ruled{
				Names: []queue.Hash{q.Queue.Hash("open alert\x00" + id.Incident)},
				DecideOld: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
					x := decodeAlert(old[0])
					if x == nil {
						x = &alertRecord{place: id.Place}
					}
					c := &queue.RuledChange{Records: make([]queue.Record, 1)}
					if x.alert, x.until = change(x.alert); x.alert != nil {
						data := EncodeRecord(KindOpenAlert, wire.Append(nil, x, (*alertRecord).fields))
						c.Records[0] = queue.Record{Data: data, Due: KindOpenAlert.Due(x.until, q.Queue.Now()), Group: q.alertsGroup(id.Place)}
					}
					return c, nil
				},
			}))
		},
	})
}

// errAlertChanged is returned when an open alert is not any more as it was read.
var errAlertChanged = fmt.Errorf("the open alert: %w", queue.ErrChanged)

// dueOpenAlert forgets an alert.
func (q *Outbox) dueOpenAlert(ctx context.Context, name queue.Hash, data []byte) error {
	x := decodeAlert(data)
	if x == nil {
		return q.RemoveRecord(ctx, name)
	}
	return q.Apply(ctx, q.usages[KindOpenAlert].Ruled(x.place, false, &queue.Ruled{
		Names: []queue.Hash{name},
		DecideOld: func(old [][]byte, _ func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
			if !bytes.Equal(old[0], data) {
				return nil, errAlertChanged
			}
			return &queue.RuledChange{Records: make([]queue.Record, 1)}, nil
		},
	}))
}
