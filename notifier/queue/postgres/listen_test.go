package postgres

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestListenFollows checks that the store listens at the server that an address leads to
// when it has moved, while the old one lives on: read-only after a fail-over, or unchanged.
// Once it listened at the old one until that ended.
func TestListenFollows(t *testing.T) {
	t.Parallel()
	if !racetest.All() {
		t.Skip("it starts two servers of its own")
	}
	for _, tt := range []struct {
		name string
		old  string // what is changed at the old server
	}{
		{"read-only", "ALTER SYSTEM SET default_transaction_read_only = on"},
		{"unchanged", "SELECT 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from, to := ownServer(t), ownServer(t)
			proxy := newProxy(t, from.port, 0)
			s := open(t, proxy.dsn(from.dsn("postgres")))
			listens := func(at *server) bool {
				return len(execute(t, at.dsn("postgres"), "SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN notify_queue'")[0].Rows) == 1
			}
			for end := time.Now().Add(time.Minute); !listens(from) || !s.listening.Load(); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it does not listen")
				}
			}
			acceptBy(t, s, time.Now())
			proxy.target.Store(int64(to.port))
			execute(t, from.dsn("postgres"), tt.old)
			execute(t, from.dsn("postgres"), "SELECT pg_reload_conf()")
			s.pool.mu.Lock()
			if tt.name == "unchanged" {
				s.pool.closeIdle("") // they would stay at the old server as well
			}
			s.pool.mu.Unlock()
			for end := time.Now().Add(time.Minute); !listens(to); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it still listens at the old server")
				}
				acceptBy(t, s, end)
			}
		})
	}
}
