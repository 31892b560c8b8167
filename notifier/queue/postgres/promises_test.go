package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// fill adds n messages to the tables, each with a job for a destination that is
// due at a time. Their records are copies of one, so that they cannot be
// delivered.
func fill(tb testing.TB, s *Store, dsn string, n int, destination string, due time.Time) {
	tb.Helper()
	if n == 0 {
		return
	}
	e := newEntry("text", destination)
	e.Jobs[0].Due = due
	if err := s.Accept(tb.Context(), 1<<40, e); err != nil {
		tb.Fatal(err)
	}
	execute(tb, dsn, fmt.Sprintf(`
		INSERT INTO notify_queue_messages (id, created, size, kept, jobs, waiting, dead, files, finished, head, body)
			SELECT md5('fill' || i)::UUID, created + i, size, kept, jobs, waiting, dead, files, finished, head, body
			FROM notify_queue_messages, generate_series(2, %[1]d) i WHERE id = '%[2]s';
		INSERT INTO notify_queue_jobs (message, idx, shard, created, destination, host, client, text, status, due, not_before, updated, record)
			SELECT md5('fill' || i)::UUID, idx, i %% 16, created, destination, host, client, text, status, due, not_before, updated, record
			FROM notify_queue_jobs, generate_series(2, %[1]d) i WHERE message = '%[2]s';
		UPDATE notify_queue_counts SET waiting = waiting + %[1]d - 1, bytes = bytes + %[3]d WHERE shard = 0;
		ANALYZE notify_queue_messages; ANALYZE notify_queue_jobs`, n, e.Message.ID, int64(n-1)*e.Size()))
}

// isUnavailable reports an error that is not an UnavailableError.
func isUnavailable(tb testing.TB, what string, err error) {
	tb.Helper()
	if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
		tb.Errorf("%s: %v, want an UnavailableError", what, err)
	}
}

// scans returns how often the tables of messages and jobs were read from end to
// end.
func scans(tb testing.TB, dsn string) int {
	tb.Helper()
	rows := execute(tb, dsn, `SELECT pg_stat_clear_snapshot(); SELECT coalesce(sum(seq_scan), 0)::TEXT FROM pg_stat_user_tables
		WHERE schemaname = current_schema() AND relname IN ('notify_queue_messages', 'notify_queue_jobs')`)
	n, err := strconv.Atoi(string(rows[1].Rows[0][0]))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestCounts checks that accepting and counting do not read all messages. Once
// each request that began in the wrong moment counted the whole table, so that a
// gateway with 800,000 waiting messages accepted 4 a second.
func TestCounts(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	const n = 20_000
	fill(t, s, dsn, n, "down", time.Now().Add(time.Hour))
	// The server reports its statistics when a connection is idle for a second, or
	// when it ends.
	count := func(f func(s *Store)) int {
		before := scans(t, dsn)
		s := open(t, dsn)
		f(s)
		s.Close()
		return scans(t, dsn) - before
	}
	var st queue.Stats
	got := count(func(s *Store) {
		for i := range 20 {
			s.size.mu.Lock()
			s.size.counted = time.Now().Add(-time.Minute) // the last count is old
			s.size.mu.Unlock()
			if err := s.Accept(t.Context(), 1<<40, newEntry("text", fmt.Sprint("json://host", i))); err != nil {
				t.Error(err)
			}
			var err error
			if st, err = s.Stats(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	if got > 0 {
		t.Errorf("the tables were read %d times", got)
	}
	if st.Queued != n+20 || st.Sending != 0 || st.Bytes <= n {
		t.Errorf("%+v", st)
	}
}

// TestWaitingIsCountedRarely checks that callers who ask for what waits do not
// make the server count all the time.
func TestWaitingIsCountedRarely(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).database(t)
	s, other := open(t, dsn), open(t, dsn)
	if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Waiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitingCounts.end = time.Now().Add(time.Hour) // instead of many messages
	if err := other.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
		t.Fatal(err)
	}
	jobs := func() int {
		t.Helper()
		all, err := s.Waiting(t.Context(), s.Hash("a"))
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Jobs
	}
	for range 100 {
		if n := jobs(); n != 1 {
			t.Fatalf("the server is asked: %d", n)
		}
	}
	s.waitingCounts.end = time.Time{}
	execute(t, dsn, "UPDATE notify_queue_leases SET done = 0 WHERE name = 'waiting'")
	if n := jobs(); n != 2 {
		t.Errorf("the number is not counted again: %d", n)
	}
}

// TestFullIsShared checks that messages of all gateways count for the limit.
func TestFullIsShared(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	a, b := open(t, dsn), open(t, dsn)
	e := newEntry("text", "a")
	if err := a.Accept(t.Context(), e.Size(), e); err != nil {
		t.Fatal(err)
	}
	if err := b.Accept(t.Context(), e.Size(), newEntry("text", "a")); !errors.Is(err, queue.ErrFull) {
		t.Error(err)
	}
}

// TestReplacedDatabase checks that a store creates its tables again when they are
// gone. Once messages were refused until a restart.
func TestReplacedDatabase(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	stores := []*Store{open(t, dsn), open(t, dsn), open(t, dsn)}
	for _, s := range stores {
		if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tables := range []string{
		"notify_queue_messages, notify_queue_jobs, notify_queue_files, notify_queue_destinations, notify_queue_counts, notify_queue_records, " +
			"notify_queue_version",
		"notify_queue_jobs", // not all of them
	} {
		execute(t, dsn, "DROP TABLE "+tables)
		var wg sync.WaitGroup
		for _, s := range stores {
			wg.Go(func() {
				if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		claimed := 0
		for _, s := range stores {
			jobs, _, err := s.Claim(t.Context(), claimOf(10))
			if err != nil {
				t.Error(err)
			}
			claimed += len(jobs)
		}
		if claimed != len(stores) {
			t.Errorf("claimed %d", claimed)
		}
	}
}

// TestStalledServer checks that requests fail fast when the server accepts
// connections and answers nothing, and that the store recovers. Once each request
// waited for 20 to 30 seconds.
func TestStalledServer(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	proxy := newProxy(t, server.port, 0)
	s := open(t, proxy.dsn(server.schema(t)))
	accept := func() error { return s.Accept(t.Context(), 1<<40, newEntry("text", "a")) }
	if err := accept(); err != nil {
		t.Fatal(err)
	}
	proxy.stalled.Store(true)
	start := time.Now()
	// What waits for an answer fails when the server is found to be silent.
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { _, err := s.Stats(t.Context()); isUnavailable(t, "stats", err) })
	}
	wg.Wait()
	first := time.Since(start)
	start = time.Now()
	for range 100 {
		_, err := s.Stats(t.Context())
		isUnavailable(t, "stats", err)
		isUnavailable(t, "accept", accept())
	}
	if rest := time.Since(start); rest > 2*replyTime {
		t.Errorf("100 requests took %s after the first ones, which took %s", rest, first)
	}
	t.Logf("200 requests at once took %s, 100 others %s", first, time.Since(start))
	proxy.stalled.Store(false)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if err := accept(); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestReadOnlyServer checks that a server that cannot be written any more, as
// after a failover, is noticed without a message, and that messages are accepted
// again when it can, on new connections.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.database(t)
	s := open(t, dsn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Accept(t.Context(), 1<<40))
	must(s.Accept(t.Context(), 1<<40, newEntry("text", "a")))
	database := dsn[strings.LastIndex(dsn, "/")+1 : strings.Index(dsn, "?")]
	set := func(value string) {
		t.Helper()
		execute(t, server.dsn("postgres"), "ALTER DATABASE "+database+" SET default_transaction_read_only = "+value)
	}
	set("on")
	s.pool.mu.Lock()
	s.pool.closeIdle("") // the setting is for new connections
	s.pool.mu.Unlock()
	isUnavailable(t, "a check", s.Accept(t.Context(), 1<<40))
	isUnavailable(t, "a message", s.Accept(t.Context(), 1<<40, newEntry("text", "a")))
	set("off")
	must(s.Accept(t.Context(), 1<<40))
	must(s.Accept(t.Context(), 1<<40, newEntry("text", "a")))
}

// TestFewConnections checks that requests wait for a connection if the server
// allows fewer than the pool has. Once 13 of 1,000 were refused.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.database(t)
	name := server.role()
	execute(t, dsn, "CREATE ROLE "+name+" LOGIN CONNECTION LIMIT 4; GRANT ALL ON SCHEMA public TO "+name)
	s := open(t, strings.Replace(dsn, "postgres@", name+"@", 1))
	e := newEntry("text", "a")
	if err := s.Accept(t.Context(), 1<<40, e); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if _, err := s.Get(t.Context(), e.Message.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestIdle checks that a gateway with nothing to do asks the server for little.
func TestIdle(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).database(t)
	var asked atomic.Bool
	s, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret, conflict: func() error {
		if asked.Load() {
			return errors.New("the server is asked")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for !s.listening.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	_, next, err := s.Claim(t.Context(), claimOf(10))
	for range 3 { // until it has read what came before it listened
		if time.Until(next) < listenedEvery/2 {
			_, next, err = s.Claim(t.Context(), claimOf(10))
		}
	}
	if left := time.Until(next); err != nil || left < listenedEvery/2 {
		t.Errorf("the next claim is in %s, %v", left, err)
	}
	// Claims before that need no server: a queue claims whenever something ends.
	asked.Store(true)
	for range 100 {
		if _, _, err := s.Claim(t.Context(), claimOf(10)); err != nil {
			t.Fatal(err)
		}
	}
	asked.Store(false)
}

// TestEqualRequests checks that requests with one idempotency key wait for the
// first one's commit, also if several gateways get them in different orders.
func TestEqualRequests(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	stores := []*Store{open(t, dsn), open(t, dsn)}
	var first sync.Map
	var accepted atomic.Int32
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 10 {
				key := fmt.Sprint("key ", (k*7+i)%10)
				e := newEntry("text", "a")
				e.Message.Key, e.Message.Request = key, []byte("request")
				err := stores[i%2].Accept(t.Context(), 1<<40, e)
				id := e.Message.ID
				if d, ok := errors.AsType[*queue.DuplicateError](err); ok && d.SameRequest {
					id = d.ID
				} else if err != nil {
					t.Error(err)
				} else {
					accepted.Add(1)
				}
				if other, loaded := first.LoadOrStore(key, id); loaded && other != id {
					t.Errorf("%s has the messages %s and %s", key, other, id)
				}
			}
		})
	}
	wg.Wait()
	if n := accepted.Load(); n != 10 {
		t.Errorf("%d were accepted, want 10", n)
	}
}

// TestAcceptedWithoutReply checks that a message is looked up if the reply to its
// commit is lost, also if the server cannot be reached at once. Otherwise it
// would be delivered although it was refused.
func TestAcceptedWithoutReply(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection is lost")
	var replies, down atomic.Int32
	s, err := openReady(t.Context(), Options{
		DSN: sharedServer(t).schema(t), Secret: secret,
		conflict: func() error {
			if replies.Load() == 0 && down.Add(-1) >= 0 {
				return lost
			}
			return nil
		},
		loseReply: func() error {
			if replies.Add(-1) == 0 {
				return lost
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n, failures := range []int32{0, 1} {
		down.Store(failures)
		replies.Store(1)
		e := newEntry("text", "a")
		e.Message.Key = fmt.Sprint("key ", n)
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Errorf("%d failures afterwards: %v", failures, err)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Queued != n+1 {
			t.Errorf("%d failures afterwards: %+v, %v", failures, st, err)
		}
	}
}

// TestBlockedDestinations checks that jobs that have no slot do not keep others
// from being found, however many there are, and that more than one job of each of
// the others is found.
func TestBlockedDestinations(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	a, b := open(t, dsn), open(t, dsn)
	now := time.Now()
	fill(t, a, dsn, 5000, "hangs", now.Add(-time.Hour))
	var entries []*queue.Entry
	for range 4 {
		for i := range 20 {
			entries = append(entries, newEntry("text", fmt.Sprint("json://host", i)))
		}
	}
	if err := b.Accept(t.Context(), 1<<40, entries...); err != nil {
		t.Fatal(err)
	}
	b.Close() // so that only the tables have these jobs
	slots := queue.NewSlots(1000, queue.Health{Destination: a.Hash("hangs"), DownSince: now, Failures: 3, Changed: now})
	slots.Take(queue.Candidate{Job: queue.JobID{Message: queue.NewID()}, Destination: a.Hash("hangs")}) // its only one
	got := map[string]int{}
	claims := 0
	for n := 0; n < 80; claims++ {
		jobs, next, err := a.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 64, Slots: slots, Lease: time.Minute})
		if err != nil || claims > 1000 {
			t.Fatalf("%d claimed by %d claims, %v", n, claims, err)
		}
		for _, j := range jobs {
			got[j.Destination]++
			n++
			slots.Release(j.JobID)
		}
		time.Sleep(time.Until(next))
	}
	if len(got) != 20 || got["hangs"] > 0 {
		t.Errorf("claimed %v", got)
	}
}
