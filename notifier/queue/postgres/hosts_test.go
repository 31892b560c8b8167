package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres/internal/hosts"
)

// failOverTime is how long after a fail-over messages may be refused.
const failOverTime = 10 * time.Second

// bothHosts returns a connection string with the hosts of two.
func bothHosts(tb testing.TB, a, b string) string {
	tb.Helper()
	x, err := pgconn.ParseConfig(a)
	if err != nil {
		tb.Fatal(err)
	}
	y, err := pgconn.ParseConfig(b)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Replace(a, fmt.Sprintf("127.0.0.1:%d/", x.Port), fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d/", x.Port, y.Port), 1) +
		"&target_session_attrs=read-write"
}

// acceptBy waits until the store accepts a message, and returns it.
func acceptBy(tb testing.TB, s *Store, end time.Time) *queue.Entry {
	tb.Helper()
	for {
		e := newEntry("text", "a")
		err := s.Accept(tb.Context(), 1<<40, e)
		if err == nil {
			return e
		}
		if time.Now().After(end) {
			tb.Fatalf("no message is accepted: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestHostHangs checks that another host is used when the present one swallows packets on open and
// new connections. All connections to that host are closed, also the one that listens, and the
// other host stays the first one. Once messages were refused as long as a host hung.
func TestHostHangs(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.database(t)
	a, b := newProxy(t, server.port, 0), newProxy(t, server.port, 0)
	s := open(t, bothHosts(t, a.dsn(dsn), b.dsn(dsn)))
	for end := time.Now().Add(time.Minute); !s.listening.Load() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	acceptBy(t, s, time.Now())
	addresses := func() (out []string) {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		for _, c := range s.pool.all {
			if !slices.Contains(out, c.address) {
				out = append(out, c.address)
			}
		}
		return out
	}
	if got := addresses(); !slices.Equal(got, []string{a.address()}) {
		t.Fatalf("connected to %q, want the first host %s", got, a.address())
	}
	a.stalled.Store(true)
	end := time.Now().Add(failOverTime)
	acceptBy(t, s, end)
	for slices.Contains(addresses(), a.address()) { // exchanges that were under way
		if time.Now().After(end) {
			t.Fatalf("connected to %q after the fail-over, want %s", addresses(), b.address())
		}
		time.Sleep(20 * time.Millisecond)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s.pool.mu.Lock()
		l := s.pool.listener
		s.pool.mu.Unlock()
		if l != nil && l.address == b.address() {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen at the other host")
		}
	}
	start := time.Now()
	a.stalled.Store(false)
	s.pool.mu.Lock()
	s.pool.closeIdle("")
	s.pool.mu.Unlock()
	acceptBy(t, s, start)
	if got := addresses(); !slices.Equal(got, []string{b.address()}) {
		t.Errorf("connected to %q when both answer, want %s, which answered last", got, b.address())
	}
}

// TestStartWithHungHost checks that a store opens although the first host hangs.
func TestStartWithHungHost(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	a, b := newProxy(t, server.port, 0), newProxy(t, server.port, 0)
	a.stalled.Store(true)
	s := open(t, bothHosts(t, a.dsn(dsn), b.dsn(dsn)))
	acceptBy(t, s, time.Now())
}

// TestFailOver checks with a primary and its standby that messages are accepted soon after
// the standby was promoted, while the primary hangs.
func TestFailOver(t *testing.T) {
	t.Parallel()
	if !racetest.All() {
		t.Skip("it starts two servers of its own; TestHostHangs is about the same with one")
	}
	primary := ownServer(t)
	standby := primary.standby(t)
	hung := newProxy(t, primary.port, 0)
	s := open(t, bothHosts(t, hung.dsn(primary.dsn("postgres")), standby.dsn("postgres")))
	before := acceptBy(t, s, time.Now().Add(time.Minute))
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		rows := execute(t, standby.dsn("postgres"), "SELECT 1 WHERE to_regclass('notify_queue_messages') IS NOT NULL")[0].Rows
		if len(rows) == 1 && len(execute(t, standby.dsn("postgres"), "SELECT 1 FROM notify_queue_messages")[0].Rows) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the standby does not follow")
		}
	}
	hung.stalled.Store(true)
	err := s.Accept(t.Context(), 1<<40, newEntry("text", "a"))
	if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
		t.Fatalf("accepted without a primary: %v", err)
	}
	execute(t, standby.dsn("postgres"), "SELECT pg_promote()")
	after := acceptBy(t, s, time.Now().Add(failOverTime))
	for _, e := range []*queue.Entry{before, after} {
		if _, err := s.Get(t.Context(), e.Message.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestOrderOfHosts checks the order in which addresses are tried, and their times.
func TestOrderOfHosts(t *testing.T) {
	t.Parallel()
	names := map[string][]string{"a": {"192.0.2.1", "192.0.2.2"}, "b": {"192.0.2.3"}, "one": {"192.0.2.4"}}
	for _, tt := range []struct {
		name     string
		dsn      string
		answered []string
		failed   []string
		want     []string
		timeout  time.Duration
	}{
		{"as written", "host=a,b", nil, nil, []string{"192.0.2.1:5432", "192.0.2.2:5432", "192.0.2.3:5432"}, hosts.TimeEach},
		{
			"what answered last", "host=a,b",
			[]string{"192.0.2.1:5432", "192.0.2.3:5432"},
			nil,
			[]string{"192.0.2.3:5432", "192.0.2.1:5432", "192.0.2.2:5432"},
			hosts.TimeEach,
		},
		{
			"an address of a name", "host=a,b", nil,
			[]string{"192.0.2.1:5432"},
			[]string{"192.0.2.2:5432", "192.0.2.1:5432", "192.0.2.3:5432"},
			hosts.TimeEach,
		},
		{
			"what has failed", "host=b,one",
			[]string{"192.0.2.3:5432"},
			[]string{"192.0.2.3:5432"},
			[]string{"192.0.2.4:5432", "192.0.2.3:5432"},
			hosts.TimeEach,
		},
		{"ports", "host=one,one port=1,2", []string{"192.0.2.4:2"}, nil, []string{"192.0.2.4:2", "192.0.2.4:1"}, hosts.TimeEach},
		{"an unknown name", "host=gone,one", nil, nil, []string{"192.0.2.4:5432"}, hosts.TimeEach},
		{"a name with two addresses", "host=a", []string{"192.0.2.2:5432"}, nil, []string{"192.0.2.2:5432", "192.0.2.1:5432"}, hosts.TimeEach},
		{"one address", "host=one", nil, []string{"192.0.2.4:5432"}, []string{"192.0.2.4:5432"}, replyTime},
		{
			"a time of its own", "host=a,b connect_timeout=7", nil, nil,
			[]string{"192.0.2.1:5432", "192.0.2.2:5432", "192.0.2.3:5432"},
			7 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := newPool(tt.dsn + " user=u sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			config := p.config.ConnConfig.Config.Copy()
			var tried []string
			config.LookupFunc = func(_ context.Context, host string) ([]string, error) {
				if ips := names[host]; ips != nil {
					return slices.Clone(ips), nil
				}
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			config.DialFunc = func(_ context.Context, _, address string) (net.Conn, error) {
				tried = append(tried, address)
				return nil, errors.New("refused")
			}
			for _, s := range tt.answered {
				p.hosts.NoteAnswer(s)
			}
			for _, s := range tt.failed {
				p.hosts.NoteFailure(s)
			}
			a := p.hosts.Attempt(t.Context(), config, func(string) {})
			if _, err := pgconn.ConnectConfig(t.Context(), config); err == nil {
				t.Error("connected to nobody")
			}
			last := a.Connected()
			_, _ = config.DialFunc(t.Context(), "tcp", "192.0.2.9:1") // as a lost connection does
			if tried = tried[:len(tried)-1]; a.Connected() != last {
				t.Error("the dial of a lost connection counts as one of the attempt")
			}
			if !slices.Equal(tried, tt.want) || config.ConnectTimeout != tt.timeout || last != tried[len(tried)-1] {
				t.Errorf("tried %q, the last %s, each for %s; want %q for %s", tried, last, config.ConnectTimeout, tt.want, tt.timeout)
			}
		})
	}
}
