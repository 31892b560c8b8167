package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

// checkCounts compares the counts with what the tables hold.
func checkCounts(tb testing.TB, dsn string) {
	tb.Helper()
	row := func(sql string) string {
		return string(bytes.Join(execute(tb, dsn, sql)[0].Rows[0], []byte(" ")))
	}
	got := row("SELECT sum(waiting)::TEXT, sum(dead)::TEXT, sum(bytes)::TEXT, sum(kept)::TEXT, sum(records)::TEXT, sum(record_bytes)::TEXT " +
		"FROM notify_queue_counts")
	want := row(`SELECT (SELECT count(*) FROM notify_queue_jobs WHERE status IN (1, 2, 8))::TEXT, (SELECT count(*) FROM notify_queue_jobs
		WHERE status = 5)::TEXT,
		(SELECT coalesce(sum(size), 0) FROM notify_queue_messages WHERE finished IS NULL)::TEXT, (SELECT coalesce(sum(kept), 0) FROM
			notify_queue_messages WHERE finished IS NOT NULL)::TEXT,
		(SELECT count(*) FROM notify_queue_records)::TEXT, (SELECT coalesce(sum(` + updateSize + `), 0) FROM notify_queue_records)::TEXT`)
	if got != want {
		tb.Errorf("waiting, dead, bytes, kept, records and their bytes are counted as %s, want %s", got, want)
	}
}

// update returns an update that writes a record and adds or removes an owned one.
func update(s *Store, name string, n int, owned uuid.UUID) *queue.Update {
	return &queue.Update{Names: []queue.Hash{s.Hash(name)}, Decide: func(tx *queue.Tx) error {
		o := s.Hash("owned " + owned.String())
		if n > 0 {
			tx.PutOwned(o, queue.Record{Data: []byte("owned"), Due: time.Now()})
		} else if tx.Get(s.Hash(name)) != nil {
			tx.DeleteOwned(o)
		}
		tx.Put(s.Hash(name), queue.Record{Data: bytes.Repeat([]byte("x"), n), Due: time.Now()})
		return nil
	}}
}

// TestCountsOfIncidents checks the counts after several gateways have accepted, settled,
// retried, cancelled and forgotten messages about incidents at once, while connections were
// lost.
func TestCountsOfIncidents(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.database(t)
	var lost atomic.Int32
	var wg sync.WaitGroup
	var stores []*Store
	for range 3 {
		s, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret, loseReply: func() error {
			if rand.IntN(20) == 0 {
				lost.Add(1)
				return errors.New("the connection is lost")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	// A server that restarts now and then returns these errors.
	failed := func(err error) bool {
		_, unavailable := errors.AsType[*queue.UnavailableError](err)
		if err != nil && !unavailable && !errors.Is(err, queue.ErrNotClaimed) && !errors.Is(err, queue.ErrNotFound) {
			t.Error(err)
		}
		return err != nil
	}
	for i := range 12 {
		s := stores[i%len(stores)]
		wg.Go(func() {
			for k := range 40 {
				incident, owned := fmt.Sprint("incident ", i, k%5), uuid.New()
				e := newEntry(strings.Repeat("x", k), "a")
				e.Jobs[0].Status = queue.Sending
				e.Update = update(s, incident, 1+k, owned)
				if failed(s.Accept(t.Context(), 1<<40, e)) {
					continue
				}
				j := e.Jobs[0]
				j.Updated, j.Status = time.Now(), []queue.Status{queue.Delivered, queue.Dead, queue.Queued}[k%3]
				settlement := &queue.Settlement{Job: &j}
				if k%2 == 0 {
					settlement.Update = update(s, incident, 0, owned)
					settlement.Next = newEntry("next", "b")
				}
				if failed(s.Settle(t.Context(), settlement)) {
					continue
				}
				switch k % 7 {
				case 0:
					_, err := queuetest.Retry(t.Context(), s, e.Message.ID, time.Now(), time.Now().Add(time.Hour))
					failed(err)
				case 1:
					_, err := queuetest.Cancel(t.Context(), s, e.Message.ID, time.Now(), queue.Queued, queue.Dead)
					failed(err)
				case 2:
					_, err := s.Forget(t.Context(), time.Now(), 1<<40)
					failed(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	database := dsn[strings.LastIndex(dsn, "/")+1 : strings.Index(dsn, "?")]
	for killing := true; killing; {
		select {
		case <-done:
			killing = false
		case <-time.After(50 * time.Millisecond):
			execute(t, server.dsn("postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+database+
				"' AND application_name = 'caddy-notify' AND pid % 4 = 0")
		}
	}
	checkCounts(t, dsn)
	if lost.Load() == 0 {
		t.Error("no reply was lost")
	}
}

// blockedFile is a file whose reader waits until it is closed.
type blockedFile struct {
	began, release chan struct{}
	once           sync.Once
}

func (f *blockedFile) ReadAt(b []byte, _ int64) (int, error) {
	f.once.Do(func() { close(f.began) })
	<-f.release
	return len(b), nil
}

// TestCountersAreLockedLast checks that a transaction which waits for something has not locked a
// row of counts yet. Others would wait for the row.
func TestCountersAreLockedLast(t *testing.T) {
	dsn := sharedServer(t).database(t)
	s := open(t, dsn)
	claimed := func() *queue.Job {
		e := newEntry("text", "a")
		e.Jobs[0].Status = queue.Sending
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
		j := e.Jobs[0]
		j.Status, j.Updated = queue.Delivered, time.Now()
		return &j
	}
	withFile := func(f *blockedFile) *queue.Entry {
		e := newEntry("text", "a")
		e.Message.Files = []queue.File{{Size: 1, ReaderAt: f}}
		return e
	}
	waits := func() bool {
		rows := execute(t, dsn, "SELECT 1::TEXT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0].Rows
		return len(rows) > 0
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, tt := range []struct {
		name string
		do   func(f *blockedFile) error // which waits until f is released
	}{
		{"a message about an incident, with a file", func(f *blockedFile) error {
			e := withFile(f)
			e.Update = update(s, "accepted", 1, uuid.New())
			return s.Accept(t.Context(), 1<<40, e)
		}},
		{"an outcome with a message that has a file", func(f *blockedFile) error {
			return s.Settle(t.Context(), &queue.Settlement{Job: claimed(), Update: update(s, "settled", 1, uuid.New()), Next: withFile(f)})
		}},
		{"an outcome with a state that another gateway writes", func(f *blockedFile) error {
			h := queue.Health{Destination: s.Hash("a"), Known: true, Changed: time.Now()}
			if err := s.SaveHealth(t.Context(), h); err != nil {
				return err
			}
			c, err := pgconn.Connect(t.Context(), dsn)
			if err != nil {
				return err
			}
			if _, err := c.Exec(t.Context(), "BEGIN; SELECT 1 FROM notify_queue_destinations FOR UPDATE").ReadAll(); err != nil {
				return err
			}
			wg.Go(func() {
				defer c.Close(context.Background())
				for end := time.Now().Add(time.Minute); !waits() && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				f.once.Do(func() { close(f.began) })
				<-f.release
			})
			return s.Settle(t.Context(), &queue.Settlement{Job: claimed(), Health: []queue.Health{h}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &blockedFile{began: make(chan struct{}), release: make(chan struct{})}
			done := make(chan error, 1)
			go func() { done <- tt.do(f) }()
			select {
			case <-f.began:
			case err := <-done:
				t.Fatalf("it does not wait: %v", err)
			}
			rows := execute(t, dsn, "SELECT shard::TEXT FROM notify_queue_counts FOR UPDATE SKIP LOCKED")[0].Rows
			if len(rows) != counters {
				t.Errorf("%d of %d rows of counts are locked", counters-len(rows), counters)
			}
			close(f.release)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	checkCounts(t, dsn)
}

// TestUpgradedCounts checks that counts stay when the tables of an older version are
// brought up to date, and that more rows of counts and the leases are added to them.
func TestUpgradedCounts(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a"), newEntry("text", "b")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	execute(t, dsn, `DROP TABLE notify_queue_leases;
		UPDATE notify_queue_counts c SET waiting = n.waiting, bytes = n.bytes FROM (SELECT sum(waiting) AS waiting, sum(bytes) AS bytes FROM
			notify_queue_counts) n WHERE c.shard = 0;
		DELETE FROM notify_queue_counts WHERE shard >= 16; UPDATE notify_queue_counts SET waiting = 0, bytes = 0 WHERE shard > 0;
		ALTER TABLE notify_queue_counts RESET (fillfactor); UPDATE notify_queue_version SET version = 3`)
	checkCounts(t, dsn)
	var wg sync.WaitGroup
	for range 3 { // at once
		wg.Go(func() {
			s := open(t, dsn)
			if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
				t.Error(err)
			}
			if st, err := s.Stats(t.Context()); err != nil || st.Queued < 3 {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
	wg.Wait()
	checkCounts(t, dsn)
	rows := execute(t, dsn, "SELECT count(*)::TEXT FROM notify_queue_counts")[0].Rows
	if string(rows[0][0]) != fmt.Sprint(counters) {
		t.Errorf("there are %s rows of counts", rows[0][0])
	}
}

// TestStorageSettings checks that tables which change all the time have settings for that. If a
// server refuses the settings, it is used without them.
func TestStorageSettings(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		dsn := sharedServer(t).database(t)
		if refused {
			execute(t, dsn, `CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
					$$ BEGIN IF current_query() LIKE '%SET (%' THEN RAISE EXCEPTION 'not supported' USING ERRCODE = '0A000'; END IF; END $$;
				CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()`)
		}
		s := open(t, dsn)
		if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
			t.Error(err)
		}
		var set []string
		for _, row := range execute(t, dsn, "SELECT relname::TEXT FROM pg_class WHERE relname LIKE 'notify_queue_%' AND reloptions IS NOT "+
			"NULL AND relkind = 'r' ORDER BY relname")[0].Rows {
			set = append(set, string(row[0]))
		}
		want := []string{"notify_queue_counts", "notify_queue_destinations", "notify_queue_jobs", "notify_queue_messages", "notify_queue_records"}
		if refused {
			want = nil
		}
		if !slices.Equal(set, want) {
			t.Errorf("refused: %v; the tables with settings are %v, want %v", refused, set, want)
		}
	}
}
