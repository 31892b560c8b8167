package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// channel is the channel on which gateways notify each other of new jobs. The payload of a
// notification is the owner that looks whether its own notifications arrive, or empty.
const channel = "notify_queue"

// listenAgain is how long a store polls before it listens again through a pooler that does
// not pass notifications on.
const listenAgain = 10 * time.Minute

// errUnheard is returned when a notification that the pool has sent does not arrive: a
// pooler does not keep the session that listens, or listens at another server than the
// pool uses.
var errUnheard = errors.New("notifications of the database do not arrive")

// listener hears of jobs of other gateways, and tells them of its own.
type listener struct {
	*tables
	due       *due
	listening atomic.Bool   // the server notifies of jobs of other gateways
	changed   chan struct{} // of [Store.Changed]
	dirty     chan struct{} // signals that jobs for other gateways are stored
}

// listen waits for notifications of other gateways. It returns if the server
// does not support them; the store then polls every second.
func (l *listener) listen(ctx context.Context) {
	told := false
	for ctx.Err() == nil {
		pause := restTime
		c, err := l.pool.listen(ctx)
		if err == nil {
			err = l.hear(ctx, c)
			closeConn(c)
			if l.listening.Swap(false) {
				told = false
				l.lookAgain()
			}
		}
		switch {
		case unsupported(err):
			return
		case errors.Is(err, errUnheard) && c.pooler:
			pause = listenAgain
			if !told {
				told = true
				l.log.Warn("the pooler in front of the queue's database does not pass notifications on, so the database is asked each second for "+
					"what other gateways have accepted",
					zap.String("address", c.address))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// unsupported reports whether the server knows no notifications.
func unsupported(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "0A000" || e.Code == "42601" || e.Code == "42883") // not supported, syntax error, no such function
}

// hear listens on a connection until that fails, or until a notification of the pool does
// not arrive. It sends one now and then, because a connection can outlive the role of its
// server as primary.
func (l *listener) hear(ctx context.Context, c *conn) error {
	short, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	if _, err := c.pg.Exec(short, "LISTEN "+channel).ReadAll(); err != nil {
		return err
	}
	own := l.owner.String()
	for {
		if err := l.sendNotification(ctx, own); err != nil {
			return err
		}
		heard, err := l.receive(ctx, c, replyTime, own)
		if err != nil {
			return err
		}
		if !heard {
			return errUnheard
		}
		if !l.listening.Swap(true) {
			l.lookAgain() // what was stored before is not notified
		}
		if _, err := l.receive(ctx, c, listenedEvery, ""); err != nil {
			return err
		}
	}
}

// receive receives notifications for a time, or until one has the payload own, if that is
// not empty.
func (l *listener) receive(ctx context.Context, c *conn, d time.Duration, own string) (heard bool, err error) {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		n, err := c.outside.WaitForNotification(short)
		switch {
		case err != nil && short.Err() != nil && ctx.Err() == nil && !c.pg.IsClosed():
			return false, nil
		case err != nil:
			return false, err
		case n.Payload == "":
			l.lookAgain()
		case n.Payload == own:
			return true, nil
		}
	}
}

// sendNotification notifies all that listen.
func (l *listener) sendNotification(ctx context.Context, payload string) error {
	return l.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, sendNotification, channel, payload)
		return err
	})
}

const sendNotification = "SELECT pg_notify($1, $2)::TEXT"

// lookAgain makes the next Claim look for jobs that are due.
func (l *listener) lookAgain() {
	l.due.changed()
	signal(l.changed)
}

// notify notifies other gateways of new jobs, at most once a second, because a
// notification locks the whole database during its commit, and because this
// gateway delivers what it has accepted as long as it has room.
func (l *listener) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.dirty:
		}
		pause := pollEvery
		if l.sendNotification(ctx, "") != nil {
			pause = 10 * pollEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
