package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// errAlone is returned for a transaction that the server has committed without its
// synchronous standby, because somebody cancelled the statement. It is handled like a lost
// connection: the standby may get the transaction later, or never.
var errAlone = errors.New("the server has committed without its synchronous standby")

// errUnconfirmed is returned when the server has stored data that its synchronous standby may not
// have. The data is lost if the server is. Another attempt would wait as long again.
var errUnconfirmed = errors.New("the server does not confirm in time what it has stored; its synchronous standby may hang")

// confirm returns nil if all data that the connection can read is also on the synchronous standbys,
// if there are any. A visible transaction may be missing there: when a connection is lost during a
// commit, the server no longer waits for a standby. The commit of a later write confirms all
// earlier writes.
func (c *conn) confirm(ctx context.Context) error {
	rows, err := c.query(ctx, "UPDATE notify_queue_counts SET waiting = waiting WHERE shard = $1 RETURNING shard", c.counter)
	switch {
	case err == nil && len(rows) == 1:
		return nil
	case err == nil, pgconn.Timeout(err), errors.Is(err, errAlone):
		return errUnconfirmed
	}
	return err
}

// noteNotice is the hook of pgconn for notices of the server. The name of the function does
// not depend on the language of the server, as the text does. Its code is the one of all warnings.
func (c *conn) noteNotice(n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		c.alone.Store(true)
	}
}
