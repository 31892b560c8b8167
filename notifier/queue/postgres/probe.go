package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors of [Probe] about a database that answers.
var (
	errReadOnly = errors.New("the database takes no changes, as a standby does; name the primary, or several hosts with " +
		"target_session_attrs=read-write")
	errNoRights = errors.New("the user may not create the tables of the queue, or not write into them; grant it CREATE on the schema, or " +
		"make it the owner of the tables")
)

// probeRights asks whether the tables can be made or, if they exist, be written.
const probeRights = `SELECT current_setting('transaction_read_only') = 'off',
	CASE WHEN to_regclass('notify_queue_messages') IS NULL THEN coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
	ELSE has_table_privilege('notify_queue_messages', 'INSERT') END`

// Probe connects to a database as [Open] does, without changing anything, and returns how
// far the clock of this machine is ahead of the clock of the server. The error says why a queue
// cannot be kept there. It does not contain the password.
func Probe(ctx context.Context, dsn string) (ahead time.Duration, err error) {
	p, err := newPool(dsn)
	if err != nil {
		return 0, err
	}
	defer p.close()
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	writable, allowed := false, false
	err = p.do(ctx, func(ctx context.Context, c *conn, _ bool) error {
		began := time.Now()
		results, err := c.exec(ctx, readTime)
		if err != nil {
			return err
		}
		middle := began.Add(time.Since(began) / 2)
		ahead = middle.Sub(time.UnixMicro(number(results[0].Rows[0][0])))
		if results, err = c.exec(ctx, call{sql: probeRights}); err != nil {
			return err
		}
		row := results[0].Rows[0]
		writable, allowed = isTrue(row[0]), isTrue(row[1])
		return nil
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("asking PostgreSQL: %w", err)
	case !writable:
		return ahead, errReadOnly
	case !allowed:
		return ahead, errNoRights
	}
	return ahead, nil
}

// isTrue reports whether a boolean is true, in the text or the binary format.
func isTrue(b []byte) bool { return len(b) == 1 && (b[0] == 1 || b[0] == 't') }
