package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// channel is the channel on which gateways notify each other of new jobs. A payload is the
// owner that looks whether its own notifications arrive.
const channel = "notify_queue"

// listenAgain is how long a store polls before it listens again through a pooler that does
// not pass notifications on.
const listenAgain = 10 * time.Minute

// errUnheard is returned when a notification that the pool has sent does not arrive: a
// pooler does not keep the session that listens, or its server is no longer that of the
// pool.
var errUnheard = errors.New("notifications of the database do not arrive")

// listen waits for notifications of other gateways. It returns if the server
// does not support them; the store then polls every second.
func (s *Store) listen(ctx context.Context) {
	told := false
	for ctx.Err() == nil {
		pause := restTime
		c, err := s.pool.listen(ctx)
		if err == nil {
			err = s.hear(ctx, c)
			closeConn(c)
			if s.listening.Swap(false) {
				told = false
				s.lookAgain()
			}
		}
		switch {
		case unsupported(err):
			return
		case errors.Is(err, errUnheard) && c.pooler:
			pause = listenAgain
			if !told {
				told = true
				s.log.Warn("the pooler in front of the queue's database does not pass notifications on, so the database is asked each second for what other gateways have accepted",
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
func (s *Store) hear(ctx context.Context, c *conn) error {
	short, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	if _, err := c.pg.Exec(short, "LISTEN "+channel).ReadAll(); err != nil {
		return err
	}
	own := s.owner.String()
	for {
		if err := s.sendNotification(ctx, own); err != nil {
			return err
		}
		heard, err := s.receive(ctx, c, replyTime, own)
		if err != nil {
			return err
		}
		if !heard {
			return errUnheard
		}
		if !s.listening.Swap(true) {
			s.lookAgain() // what was stored before is not notified
		}
		if _, err := s.receive(ctx, c, listenedEvery, ""); err != nil {
			return err
		}
	}
}

// receive receives notifications for a time, or until one has the payload own, if that is
// not empty.
func (s *Store) receive(ctx context.Context, c *conn, d time.Duration, own string) (heard bool, err error) {
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
			s.lookAgain()
		case n.Payload == own:
			return true, nil
		}
	}
}

// sendNotification notifies all that listen.
func (s *Store) sendNotification(ctx context.Context, payload string) error {
	return s.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		_, err := c.query(ctx, sendNotification, channel, payload)
		return err
	})
}

const sendNotification = "SELECT pg_notify($1, $2)::TEXT"

// lookAgain makes the next Claim look for jobs that are due.
func (s *Store) lookAgain() {
	s.due.changed()
	signal(s.changed)
}

// notify notifies other gateways of new jobs, at most once a second, because a
// notification locks the whole database during its commit, and because this
// gateway delivers what it has accepted as long as it has room.
func (s *Store) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		pause := pollEvery
		if s.sendNotification(ctx, "") != nil {
			pause = 10 * pollEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
