package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// shards is the number of parts into which jobs are spread. All gateways read all parts, but seldom
// the same one at once.
const shards = 16

// The tables. They use only features that PostgreSQL, CockroachDB and
// YugabyteDB have in common. Times are microseconds since 1970. status is a
// queue.Status.
//
// A message waits as long as finished is NULL. The shard of a job comes from the ID of its message.
// A Queued job is parked if it waits for a destination that is down; then it is due when it
// expires. A destination parks such jobs; until is when it has its next turn, and failed is when
// its last failed attempt began. A count is the sum of a column of all rows of notify_queue_counts;
// each transaction changes one of the rows. A gateway that works for all gateways holds a row of
// notify_queue_leases.
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
	`CREATE INDEX IF NOT EXISTS notify_queue_messages_results ON notify_queue_messages (finished) WHERE ` + onlyResults,
	`CREATE INDEX IF NOT EXISTS notify_queue_messages_lasting ON notify_queue_messages (finished) WHERE ` + lasting,
	`CREATE TABLE IF NOT EXISTS notify_queue_jobs (
		message UUID NOT NULL,
		idx INT NOT NULL,
		shard SMALLINT NOT NULL,
		created BIGINT NOT NULL,
		destination BYTEA NOT NULL,
		host BYTEA NOT NULL,
		client INT NOT NULL,
		text BIGINT NOT NULL,
		status SMALLINT NOT NULL,
		due BIGINT NOT NULL,
		not_before BIGINT NOT NULL,
		updated BIGINT NOT NULL,
		owner UUID,
		lease BIGINT,
		record BYTEA NOT NULL,
		PRIMARY KEY (message, idx)
	)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_due ON notify_queue_jobs (shard, due) WHERE status = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_destination ON notify_queue_jobs (destination, due) WHERE status = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_lease ON notify_queue_jobs (lease) WHERE status = 2`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_dead ON notify_queue_jobs (message, idx) WHERE status = 5`,
	`CREATE TABLE IF NOT EXISTS notify_queue_files (
		message UUID NOT NULL,
		file INT NOT NULL,
		chunk INT NOT NULL,
		data BYTEA NOT NULL,
		PRIMARY KEY (message, file, chunk)
	)`,
	`CREATE TABLE IF NOT EXISTS notify_queue_destinations (
		hash BYTEA PRIMARY KEY,
		changed BIGINT NOT NULL,
		stored BIGINT NOT NULL,
		record BYTEA NOT NULL
	)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_destinations_stored ON notify_queue_destinations (stored)`,
	`CREATE TABLE IF NOT EXISTS notify_queue_counts (
		shard INT PRIMARY KEY,
		waiting BIGINT NOT NULL,
		dead BIGINT NOT NULL,
		bytes BIGINT NOT NULL,
		kept BIGINT NOT NULL
	)`,
}, {
	`CREATE TABLE IF NOT EXISTS notify_queue_records (
		name BYTEA PRIMARY KEY,
		due BIGINT NOT NULL,
		grp BYTEA,
		data BYTEA NOT NULL
	)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_records_group ON notify_queue_records (grp, name) WHERE grp IS NOT NULL`,
	`CREATE INDEX IF NOT EXISTS notify_queue_records_due ON notify_queue_records (due)`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_held ON notify_queue_jobs (message, idx) WHERE status = 8`,
}, {
	`ALTER TABLE notify_queue_counts ADD COLUMN IF NOT EXISTS records BIGINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_counts ADD COLUMN IF NOT EXISTS record_bytes BIGINT NOT NULL DEFAULT 0`,
	`UPDATE notify_queue_counts SET records = 0, record_bytes = 0`,
	`UPDATE notify_queue_counts SET records = n.records, record_bytes = n.bytes FROM (
		SELECT count(*) AS records, coalesce(sum(` + updateSize + `), 0)::BIGINT AS bytes FROM notify_queue_records) n WHERE shard = 0`,
}, {
	// Jobs that waited before have no time at which they expire. Each is parked when it has
	// failed once more.
	`ALTER TABLE notify_queue_jobs ADD COLUMN IF NOT EXISTS expires BIGINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_jobs ADD COLUMN IF NOT EXISTS parked SMALLINT NOT NULL DEFAULT 0`,
	`CREATE INDEX IF NOT EXISTS notify_queue_jobs_turn ON notify_queue_jobs (parked, destination, due) WHERE status = 1`,
	`DROP INDEX IF EXISTS notify_queue_jobs_destination`,
	`ALTER TABLE notify_queue_destinations ADD COLUMN IF NOT EXISTS client SMALLINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_destinations ADD COLUMN IF NOT EXISTS known SMALLINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_destinations ADD COLUMN IF NOT EXISTS failed BIGINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_destinations ADD COLUMN IF NOT EXISTS until BIGINT NOT NULL DEFAULT 0`,
	`ALTER TABLE notify_queue_destinations ADD COLUMN IF NOT EXISTS parks SMALLINT NOT NULL DEFAULT 0`,
	`CREATE INDEX IF NOT EXISTS notify_queue_destinations_until ON notify_queue_destinations (until) WHERE parks = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_destinations_known ON notify_queue_destinations (hash) WHERE known = 1`,
	`CREATE INDEX IF NOT EXISTS notify_queue_destinations_clients ON notify_queue_destinations (stored) WHERE client = 1 AND parks = 0`,
}, {
	// The rows of notify_queue_counts become more, too.
	`CREATE TABLE IF NOT EXISTS notify_queue_leases (
		name TEXT PRIMARY KEY,
		owner UUID NOT NULL,
		ends BIGINT NOT NULL,
		done BIGINT NOT NULL,
		data BYTEA
	)`,
}}

// turnsVersion is the version whose tables have the turns of destinations.
const turnsVersion = 4

// storage has settings of PostgreSQL for tables that change all the time: room for new
// versions of a row on its page, where no index has to know of them, and a vacuum after
// 5 % of the rows have changed instead of 20 %. Other servers have neither. An operator's
// own settings stay, because these are made only when the tables are brought up to date.
const storage = `ALTER TABLE notify_queue_counts SET (fillfactor = 50);
	ALTER TABLE notify_queue_messages SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
	ALTER TABLE notify_queue_jobs SET (autovacuum_vacuum_scale_factor = 0.05); -- each change of a job changes an index
	ALTER TABLE notify_queue_destinations SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
	ALTER TABLE notify_queue_records SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)`

// updateSize is the size of a record as record.UpdateSize returns it.
const updateSize = `128 + length(data)`

// The kinds of finished messages: those that have only results, and those that
// are forgotten last.
const (
	onlyResults = `finished IS NOT NULL AND dead = 0 AND idempotency IS NULL`
	lasting     = `finished IS NOT NULL AND (dead > 0 OR idempotency IS NOT NULL)`
)

// initCounts adds the rows of notify_queue_counts.
const initCounts = `INSERT INTO notify_queue_counts (shard, waiting, dead, bytes, kept)
	SELECT s, 0, 0, 0, 0 FROM unnest($1::BIGINT[]) AS u (s) ON CONFLICT (shard) DO NOTHING`

// shardOf returns the shard of the jobs of a message. The last byte of its ID is
// random.
func shardOf(message uuid.UUID) int64 { return int64(message[15] % shards) }

// allShards returns all shards, beginning with one of them.
func allShards(first int) (a array) {
	for i := range shards {
		a.bigint(int64((first + i) % shards))
	}
	return a
}

// needs is the lowest version whose programs can work with tables of the latest one. See [queue.Format]. If
// only what records hold changes, the migration is empty.
const needs = 5

// The table with the number of the last migration, in the row 1, and needs, in the row 2.
const createVersion = `CREATE TABLE IF NOT EXISTS notify_queue_version (id INT PRIMARY KEY, version INT NOT NULL, secret BYTEA NOT NULL)`

// addNeeds adds the row 2 to tables of a program from before there was one. They need a program that knows them.
const addNeeds = `INSERT INTO notify_queue_version SELECT 2, version, '' FROM notify_queue_version WHERE id = 1 ON CONFLICT (id) DO NOTHING`

// advisoryLock is the number of the lock that a store holds while it creates
// tables.
const advisoryLock = 7226382055461327

// migrateTime is how long a store waits for another one that creates tables.
const migrateTime = time.Minute

// errSecret is returned when the tables were created with another secret.
var errSecret error = refusef("the tables of the queue were created with another secret: set that one, or write it after the new one; to " +
	"begin with an empty queue, drop the tables notify_queue_*")

// migrate creates the tables, or brings them up to date: on PostgreSQL in one transaction with a
// lock, because a pooler keeps a transaction in one session. Other servers may define tables only
// outside of transactions. There, statements that run at the same time fail and are repeated.
func (t *tables) migrate(ctx context.Context, c *conn) error {
	rows, err := c.query(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	if !isPostgreSQL(string(rows[0][0])) {
		_, err := t.createTables(ctx, c)
		return err
	}
	upgraded := false
	err = c.transaction(ctx, func() error {
		if _, err := c.execFor(ctx, migrateTime, call{"SELECT pg_advisory_xact_lock($1)::TEXT", []any{int64(advisoryLock)}}); err != nil {
			return err
		}
		var err error
		upgraded, err = t.createTables(ctx, c)
		return err
	})
	if err != nil || !upgraded {
		return err
	}
	// Outside of the transaction, because a refusal would end it.
	_, err = c.pg.Exec(ctx, storage).ReadAll()
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		return nil
	}
	return err
}

// isPostgreSQL reports whether PostgreSQL itself has a version. YugabyteDB has YB in
// its version, and CockroachDB its name.
func isPostgreSQL(version string) bool {
	return strings.HasPrefix(version, "PostgreSQL ") && !strings.Contains(version, "-YB-")
}

// createTables does the work of migrate while the caller holds the lock. It reports whether
// the tables were not up to date.
func (t *tables) createTables(ctx context.Context, c *conn) (upgraded bool, err error) {
	if err := execAll(ctx, c, createVersion, addNeeds); err != nil {
		return false, err
	}
	stored, err := c.query(ctx, selectFormat)
	if err != nil {
		return false, err
	}
	if len(stored) > 0 {
		if err := t.joinRing(ctx, c, stored[0][1]); err != nil {
			return false, err
		}
	}
	format := formatOf(stored)
	if err := format.Check(t.knows); err != nil {
		return false, refusef("the tables of the queue: %w", err)
	}
	version := min(format.Written, len(migrations))
	if t.missing.Load() {
		version, format = 0, queue.Format{} // somebody has removed tables
	}
	joined := format.Join(queue.Format{Written: len(migrations), Needs: needs})
	if joined == format {
		return false, nil
	}
	for _, m := range migrations[version:] {
		if err := execAll(ctx, c, m...); err != nil {
			return false, err
		}
	}
	if version < turnsVersion {
		if err := t.fillDestinations(ctx, c); err != nil {
			return false, err
		}
	}
	var rows array
	for i := range counters {
		rows.bigint(int64(i))
	}
	if _, err := c.query(ctx, initCounts, rows); err != nil {
		return false, err
	}
	_, err = c.query(ctx, `INSERT INTO notify_queue_version (id, version, secret) VALUES (1, $1, $3), (2, $2, '')
		ON CONFLICT (id) DO UPDATE SET version = excluded.version`, joined.Written, joined.Needs, t.sealer.Ring(placeRing, nil, time.Now()))
	return err == nil, err
}

const selectFormat = "SELECT version, secret FROM notify_queue_version WHERE id IN (1, 2) ORDER BY id"

// formatOf returns the format that selectFormat has selected; the zero value if there are no tables.
func formatOf(rows [][][]byte) (f queue.Format) {
	if len(rows) > 0 {
		f.Written, f.Needs = int(number(rows[0][0])), int(number(rows[len(rows)-1][0]))
	}
	return f
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

// gone reports whether err is returned because a table does not exist, for
// example because the database was replaced by an empty one.
func gone(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "42P01" || e.Code == "3F000") // undefined_table, invalid_schema_name
}
