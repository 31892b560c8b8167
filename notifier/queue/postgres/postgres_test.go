package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

const secret = "the secret of the tests"

func open(tb testing.TB, dsn string) *Store {
	tb.Helper()
	s, err := openReady(tb.Context(), Options{DSN: dsn, Secret: secret})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// openReady is [Open] for a server that answers, although it may take its time on a busy
// machine: it waits until the tables are there.
func openReady(ctx context.Context, o Options) (*Store, error) {
	s, err := Open(ctx, o)
	for deadline := time.Now().Add(2 * time.Minute); err == nil && !s.migrated.Load(); time.Sleep(10 * time.Millisecond) {
		if err = s.prepare(ctx); err != nil && temporary(err) && time.Now().Before(deadline) {
			err = nil
		}
		if err != nil {
			s.Close()
		}
	}
	return s, err
}

func newEntry(body, destination string) *queue.Entry {
	now := time.Now()
	e := &queue.Entry{Message: &queue.Message{ID: queue.NewID(), Created: now, Body: []byte(body)}}
	e.Jobs = []queue.Job{{
		JobID: queue.JobID{Message: e.Message.ID}, Status: queue.Queued, Destination: destination,
		Due: now, Expires: now.Add(24 * time.Hour), Updated: now,
	}}
	return e
}

func claimOf(n int) queue.Claim {
	return queue.Claim{Now: time.Now(), Max: n, Lease: time.Minute}
}

// TestConformance runs the tests for stores with the default options, and as with a distributed
// database: without LISTEN and with conflicts. If CI is not set, each test runs with one of the
// two.
func TestConformance(t *testing.T) {
	t.Parallel()
	variants := []Options{{}, {noListen: true, oneCounter: true, conflict: func() error {
		if rand.IntN(4) == 0 {
			return &pgconn.PgError{Code: "40001", Message: "injected"}
		}
		return nil
	}}}
	run := func(t *testing.T, variants []Options) {
		server := sharedServer(t)
		var tests atomic.Int32
		queuetest.Run(t, queuetest.Engine{Shared: true, New: func(t *testing.T) func(log *zap.Logger) (queue.Store, error) {
			o := variants[int(tests.Add(1))%len(variants)]
			o.DSN, o.Secret = server.schema(t), secret
			return func(log *zap.Logger) (queue.Store, error) {
				o := o
				o.Logger = log
				return openReady(t.Context(), o)
			}
		}})
	}
	if !racetest.All() {
		run(t, variants)
		return
	}
	for i, name := range []string{"PostgreSQL", "WithoutListen"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, variants[i:i+1])
		})
	}
}

// TestConflictsEnd checks that a conflict that persists is returned as an
// error.
func TestConflictsEnd(t *testing.T) {
	t.Parallel()
	var conflict atomic.Bool
	s, err := openReady(t.Context(), Options{DSN: sharedServer(t).schema(t), Secret: secret, conflict: func() error {
		if conflict.Load() {
			return &pgconn.PgError{Code: "40001"}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conflict.Store(true)
	if _, ok := errors.AsType[*queue.UnavailableError](s.Accept(t.Context(), 1<<40, newEntry("text", "a"))); !ok {
		t.Error("no error")
	}
	conflict.Store(false)
	if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
		t.Error(err)
	}
}

// TestTables checks that several gateways that start at the same time create
// the tables, and that they refuse tables with another secret or version.
func TestTables(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			s, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	if _, err := openReady(t.Context(), Options{DSN: dsn, Secret: "another secret of that length"}); !errors.Is(err, errSecret) {
		t.Error(err)
	}
	execute(t, dsn, "UPDATE notify_queue_version SET version = 1000")
	if _, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret}); err == nil || !strings.Contains(err.Error(), "form 1000") {
		t.Error(err)
	}
	for _, o := range []Options{
		{DSN: "postgres://user:hidden-password@127.0.0.1:port/db", Secret: secret},
		{DSN: dsn + "&pool_max_conns=1", Secret: secret},
		{DSN: dsn, Secret: "short"},
		{DSN: server.dsn("there_is_no_such_database"), Secret: secret},
	} {
		s, err := openReady(t.Context(), o)
		if err == nil {
			s.Close()
			t.Errorf("%s is accepted", o.DSN)
		} else if strings.Contains(err.Error(), "hidden-password") {
			t.Error(err)
		}
	}
}

// TestWithoutAdvisoryLocks checks that gateways can create the tables at the
// same time without advisory locks.
func TestWithoutAdvisoryLocks(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	sealer, err := seal.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &tables{sealer: &record.Sealer{Sealer: sealer}, knows: len(migrations)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := newPool(dsn)
			if err != nil {
				t.Error(err)
				return
			}
			defer p.close()
			if err := p.do(t.Context(), func(ctx context.Context, c *conn, _ bool) error {
				_,
					err := s.createTables(ctx, c)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	open(t, dsn)
}

func TestNothingInPlain(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	s := open(t, dsn)
	secrets := []string{
		"text of the message", "json://user:password@host", "the summary", "the state", "the result", "the reason",
		"idempotency", "hash of the request", "content of the file",
	}
	for _, status := range []queue.Status{queue.Queued, queue.Dead, queue.Delivered} {
		e := newEntry(secrets[0], secrets[1])
		e.Message.Summary, e.Message.Key, e.Message.Request = []byte(secrets[2]), secrets[6]+status.String(), []byte(secrets[7])
		e.Message.Files = []queue.File{{Size: int64(len(secrets[8])), ReaderAt: strings.NewReader(secrets[8])}}
		j := &e.Jobs[0]
		j.Status, j.State, j.Result, j.Reason = status, []byte(secrets[3]), []byte(secrets[4]), secrets[5]
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"messages", "jobs", "files", "version"} {
		for _, row := range execute(t, dsn, "SELECT encode(t::TEXT::BYTEA, 'escape'), t::TEXT FROM notify_queue_"+table+" t")[0].Rows {
			for _, text := range secrets {
				// A column of bytes is printed as hexadecimal digits.
				if s := string(row[1]); strings.Contains(s, text) || strings.Contains(s, fmt.Sprintf("%x", text)) {
					t.Errorf("%s has %q in plain", table, text)
				}
			}
		}
	}
}

// TestDamage checks that a damaged record is logged and ends only its delivery.
func TestDamage(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	core, logs := observer.New(zapcore.ErrorLevel)
	s, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries := []*queue.Entry{newEntry("text", "a"), newEntry("text", "b"), newEntry("text", "c")}
	if err := s.Accept(t.Context(), 1<<40, entries...); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, fmt.Sprintf("UPDATE notify_queue_jobs SET record = set_byte(record, 50, 255 - get_byte(record, 50)) WHERE message = '%s'",
		entries[0].Message.ID))
	execute(t, dsn, fmt.Sprintf("UPDATE notify_queue_messages SET body = set_byte(body, 30, 255 - get_byte(body, 30)) WHERE id = '%s'",
		entries[1].Message.ID))
	jobs, _, err := s.Claim(t.Context(), claimOf(10))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("claimed %v, %v", jobs, err)
	}
	for _, j := range jobs {
		_, _, err := s.Load(t.Context(), j.Message)
		if _, damaged := errors.AsType[*queue.DamagedError](err); damaged != (j.Message == entries[1].Message.ID) {
			t.Error(err)
		}
	}
	if e, err := s.Get(t.Context(), entries[0].Message.ID); err != nil || e.Jobs[0].Status != queue.Lost {
		t.Errorf("%+v, %v", e, err)
	}
	for i, id := range []uuid.UUID{entries[0].Message.ID, entries[1].Message.ID} {
		found := false
		for _, e := range logs.All() {
			found = found || strings.Contains(e.Message, id.String())
		}
		if !found {
			t.Errorf("message %d is not in the log", i)
		}
	}
}

// TestNotification checks that another gateway is notified of new jobs.
func TestNotification(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).database(t)
	a, b := open(t, dsn), open(t, dsn)
	for {
		if err := a.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.Changed():
			return
		case <-time.After(100 * time.Millisecond): // it does not listen yet
		}
	}
}

// TestServerRestarts checks that the store returns UnavailableErrors while the
// server is down, and recovers by itself.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	dsn := server.schema(t)
	s := open(t, dsn)
	unavailable := func(what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := newEntry("text", "a")
	if err := s.Accept(t.Context(), 1<<40, first); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		server.stop(syscall.SIGQUIT) // like a crash
		unavailable("accept", s.Accept(t.Context(), 1<<40, newEntry("text", "a")))
		_, _, err := s.Claim(t.Context(), claimOf(1))
		unavailable("claim", err)
		_, err = s.Get(t.Context(), first.Message.ID)
		unavailable("get", err)
		// A gateway that starts while the server is down works as soon as the server
		// is up.
		early, err := Open(t.Context(), Options{DSN: dsn, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { early.Close() })
		unavailable("a new gateway", early.Accept(t.Context(), 1<<40, newEntry("text", "a")))
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Store{s, early} {
			if err := s.Accept(t.Context(), 1<<40, newEntry("text", "a")); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(t.Context(), first.Message.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSettlementWithoutReply checks that the store recognizes a settlement that
// was committed although the reply was lost, also if the server cannot be
// reached for a while afterwards. Such a settlement once returned
// ErrNotClaimed, as if another gateway had claimed the job.
func TestSettlementWithoutReply(t *testing.T) {
	t.Parallel()
	var replies, down atomic.Int32 // how many are lost, and how many transactions fail after that
	lost := errors.New("the connection is lost")
	s, err := openReady(t.Context(), Options{
		DSN: sharedServer(t).schema(t), Secret: secret,
		conflict: func() error {
			if replies.Load() == 0 && down.Add(-1) >= 0 {
				return lost
			}
			return nil
		},
		loseReply: func() error {
			if replies.Add(-1) >= 0 {
				return lost
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, next := newEntry("text", "a"), newEntry("fallback", "b")
	for _, e := range []*queue.Entry{e, newEntry("text", "a")} {
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
	}
	claimed, _, err := s.Claim(t.Context(), claimOf(2))
	if err != nil || len(claimed) != 2 {
		t.Fatalf("%d jobs are claimed: %v", len(claimed), err)
	}
	for i := range claimed {
		j := claimed[i]
		j.Status, j.Updated = queue.Delivered, time.Now()
		settlement := &queue.Settlement{Job: &j}
		if i == 1 {
			settlement.Next = next
		}
		down.Store(3)
		replies.Store(1)
		if _, ok := errors.AsType[*queue.UnavailableError](s.Settle(t.Context(), settlement)); !ok {
			t.Errorf("settlement %d: the first call does not fail: %v", i, err)
		}
		replies.Store(0)
		down.Store(0)
		if err := s.Settle(t.Context(), settlement); err != nil {
			t.Errorf("settlement %d: the second call: %v", i, err)
		}
		if err := s.Settle(t.Context(), settlement); !errors.Is(err, queue.ErrNotClaimed) {
			t.Errorf("settlement %d: the third call: %v", i, err)
		}
	}
	if stats, err := s.Stats(t.Context()); err != nil || stats.Queued != 1 || stats.Sending != 0 {
		t.Errorf("the store has %+v, %v; want the message that the second settlement has added, once", stats, err)
	}
}

// TestThreeGateways checks that no accepted message is lost when three
// processes share the tables, one of them is killed and the server crashes.
func TestThreeGateways(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	dsn := server.schema(t)
	var reports queuetest.Reports
	var children []*exec.Cmd
	var waits []func()
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "QUEUE_TEST_CHILD="+dsn)
		waits = append(waits, reports.Start(t, cmd))
		children = append(children, cmd)
	}
	each := racetest.Amount(500, 150)
	reports.Wait(t, each)
	if err := children[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.stop(syscall.SIGQUIT)
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	reports.Wait(t, each)
	for i, c := range children {
		_ = c.Process.Kill()
		waits[i]()
	}
	lost, twice := reports.Lost(t, open(t, dsn))
	t.Logf("%d accepted, %d lost, %d delivered twice", reports.Accepted(), lost, twice)
	if lost > 0 || twice > 3*(8+64) {
		t.Error("messages are lost, or were delivered twice although they were not in progress")
	}
}

// child accepts and delivers messages until it is killed, and prints their IDs.
func child(dsn string) {
	ctx := context.Background()
	s, err := openReady(ctx, Options{DSN: dsn, Secret: secret})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var events queuetest.Printer
	q := queue.New(s, queue.Options{Deliver: func(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
		events.Print(queuetest.Delivered, m.ID)
		return queue.Outcome{Status: queue.Delivered}
	}})
	q.Start()
	for range 8 {
		go func() {
			for i := 0; ; i++ {
				e := newEntry(strings.Repeat("text", 256), fmt.Sprint("destination ", i%10))
				pause := 100 * time.Millisecond // the server is down
				if err := q.Accept(ctx, e); err == nil {
					events.Print(queuetest.Accepted, e.Message.ID)
					pause = time.Millisecond
				}
				time.Sleep(pause)
			}
		}()
	}
	select {}
}

// BenchmarkAccept stores messages of 1 KB by 64 writers.
func BenchmarkAccept(b *testing.B) {
	server := ownServer(b)
	s := open(b, server.schema(b)+"&pool_max_conns=64")
	body := strings.Repeat("x", 1000)
	b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Accept(b.Context(), 1<<40, newEntry(body, "json://host")); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkGateways accepts and delivers messages of 1 KB with one to three
// gateways, each with 64 clients.
func BenchmarkGateways(b *testing.B) {
	for _, test := range []struct{ gateways, waiting int }{{1, 0}, {2, 0}, {3, 0}, {1, 100_000}} {
		b.Run(fmt.Sprintf("%d with %d waiting", test.gateways, test.waiting), func(b *testing.B) {
			server := ownServer(b)
			dsn := server.schema(b) + "&pool_max_conns=32"
			first := open(b, dsn)
			body := strings.Repeat("x", 1000)
			for range test.waiting / 1000 {
				entries := make([]*queue.Entry, 1000)
				for i := range entries {
					entries[i] = newEntry(body, "dead")
					entries[i].Jobs[0].Due = time.Now().Add(time.Duration(i%2) * time.Hour)
				}
				if err := first.Accept(b.Context(), 1<<40, entries...); err != nil {
					b.Fatal(err)
				}
			}
			first.Close()
			var delivered, left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			b.ResetTimer()
			var wg sync.WaitGroup
			for range test.gateways {
				s := open(b, dsn)
				q := queue.New(s, queue.Options{Deliver: func(ctx context.Context, _ *queue.Message, j *queue.Job) queue.Outcome {
					if j.Destination == "dead" {
						<-ctx.Done()
						return queue.Outcome{Status: queue.Queued}
					}
					if delivered.Add(1) == int64(b.N) {
						close(done)
					}
					return queue.Outcome{Status: queue.Delivered}
				}})
				q.Start()
				defer func() {
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					q.Close(ctx)
				}()
				for i := range 64 {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if err := q.Accept(b.Context(), newEntry(body, fmt.Sprint("json://host", i))); err != nil {
								b.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepted/s")
			<-done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "delivered/s")
		})
	}
}

// TestOlderTables checks that records which were stored before records were counted are
// counted when the tables are brought up to date.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	put := func(data []byte) {
		t.Helper()
		err := s.Update(t.Context(),
			&queue.Update{Names: []queue.Hash{s.Hash("a"), s.Hash("b")}, Decide: func(tx *queue.Tx) error {
				tx.Put(s.Hash("a"), queue.Record{Data: data, Due: time.Now()})
				tx.Put(s.Hash("b"), queue.Record{Data: data, Due: time.Now()})
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	records := func() int64 {
		t.Helper()
		st, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st.Records
	}
	put(make([]byte, 1000))
	want := records()
	s.Close()
	execute(t, dsn, "ALTER TABLE notify_queue_counts DROP COLUMN records, DROP COLUMN record_bytes")
	execute(t, dsn, "UPDATE notify_queue_version SET version = 2")
	s = open(t, dsn)
	if got := records(); got != want || got < 2000 {
		t.Errorf("the records take %d bytes, want %d", got, want)
	}
	if names, err := s.SurplusRecords(t.Context(), 1, 10); err != nil || len(names) != 1 {
		t.Errorf("of two records, %d are too many; %v", len(names), err)
	}
	put(nil)
	if got := records(); got != 0 {
		t.Errorf("no records take %d bytes", got)
	}
}
