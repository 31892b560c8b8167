package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The tables. They use only features that PostgreSQL, CockroachDB and
// YugabyteDB have in common. Times are microseconds since 1970. status is a
// queue.Status.
//
// A message waits as long as finished is NULL.
var migrations = [][]string{{
	`CREATE TABLE IF NOT EXISTS notify_queue_messages (
		id UUID PRIMARY KEY,
		created BIGINT NOT NULL,
		size BIGINT NOT NULL,
		kept BIGINT NOT NULL,
		jobs INT NOT NULL,
		waiting INT NOT NULL,
		dead INT NOT NULL,
		files INT NOT NULL,
		finished BIGINT,
		idempotency BYTEA UNIQUE,
		head BYTEA NOT NULL,
		body BYTEA
	)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_messages_waiting ON notify_queue_messages (created) WHERE finished IS NULL`,
	`CREATE INDEX IF NOT EXISTS notify_queue_messages_finished ON notify_queue_messages (finished) WHERE finished IS NOT NULL`,
	`CREATE TABLE IF NOT EXISTS notify_queue_jobs (
		message UUID NOT NULL,
		idx INT NOT NULL,
		destination BYTEA NOT NULL,
		status SMALLINT NOT NULL,
		due BIGINT NOT NULL,
		expires BIGINT NOT NULL,
		owner UUID,
		lease BIGINT,
		record BYTEA NOT NULL,
		PRIMARY KEY (message, idx)
	)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_due ON notify_queue_jobs (due) WHERE status = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_destination ON notify_queue_jobs (destination, due) WHERE status = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_expires ON notify_queue_jobs (expires) WHERE status = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_lease ON notify_queue_jobs (lease) WHERE status = 2`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_dead ON notify_queue_jobs (message, idx) WHERE status = 5`,
	`CREATE TABLE IF NOT EXISTS notify_queue_files (
		message UUID NOT NULL,
		file INT NOT NULL,
		chunk INT NOT NULL,
		data BYTEA NOT NULL,
		PRIMARY KEY (message, file, chunk)
	)`,
}}

// The table with the number of the last migration. It has one row.
const createVersion = `CREATE TABLE IF NOT EXISTS notify_queue_version (id INT PRIMARY KEY, version INT NOT NULL, secret BYTEA NOT NULL)`

// advisoryLock is the number of the lock that a store holds while it creates
// tables.
const advisoryLock = 7226382055461327

// errSecret is returned when the tables were created with another secret.
var errSecret error = &refusedError{"the tables of the queue were created with another secret: set that one; to begin with an empty queue, drop the tables notify_queue_*"}

// migrate creates the tables, or brings them up to date.
func (s *Store) migrate(ctx context.Context, c *conn) error {
	// On servers without advisory locks, statements that run at the same time fail
	// and are repeated.
	_, err := c.query(ctx, "SELECT pg_advisory_lock($1)::TEXT", int64(advisoryLock))
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == "0A000" || e.Code == "42883") { // not supported, no such function
		err = nil
	}
	if err != nil {
		return err
	}
	defer func() {
		// If this fails, the lock ends with the connection.
		_, _ = c.query(ctx, "SELECT pg_advisory_unlock($1)::TEXT", int64(advisoryLock))
	}()
	return s.createTables(ctx, c)
}

// createTables does the work of migrate while the caller holds the lock.
func (s *Store) createTables(ctx context.Context, c *conn) error {
	if err := execAll(ctx, c, createVersion); err != nil {
		return err
	}
	rows, err := c.query(ctx, "SELECT version, secret FROM notify_queue_version WHERE id = 1")
	if err != nil {
		return err
	}
	version := 0
	if len(rows) > 0 {
		version = int(number(rows[0][0]))
		if _, err := s.sealer.Open(rows[0][1], "version", nil); err != nil {
			return errSecret
		}
	}
	if version > len(migrations) {
		return refusef("the tables of the queue have version %d, and this program knows up to %d: update it", version, len(migrations))
	}
	for _, m := range migrations[version:] {
		if err := execAll(ctx, c, m...); err != nil {
			return err
		}
	}
	if version == len(migrations) {
		return nil
	}
	_, err = c.query(ctx, `INSERT INTO notify_queue_version (id, version, secret) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version`, len(migrations), s.sealer.Seal(nil, "version", nil))
	return err
}

// execAll executes statements that define tables.
func execAll(ctx context.Context, c *conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := c.pg.Exec(ctx, sql).ReadAll(); err != nil && !exists(err) {
			return err
		}
	}
	return nil
}

// exists reports whether err is returned because another process has created
// the same table or index at the same time.
func exists(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "42P07" || e.Code == "42710" || e.Code == "23505" && strings.HasPrefix(e.TableName, "pg_"))
}
