package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestServerClock checks that a handle knows the time of the server, which differs from
// that of this machine, and follows it when it changes.
func TestServerClock(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t) + ",pg_catalog"
	setAhead := func(d time.Duration) {
		execute(t, dsn, fmt.Sprintf(`CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS
			$$ BEGIN RETURN pg_catalog.clock_timestamp() + INTERVAL '%d seconds'; END $$`, int(d.Seconds())))
	}
	ahead := func(s *Store) time.Duration { return time.Until(s.Now()).Round(time.Minute) }
	setAhead(7 * time.Minute)
	s := open(t, dsn)
	if got := ahead(s); got != 7*time.Minute {
		t.Errorf("the server is %v ahead, want 7 minutes", got)
	}
	for _, want := range []time.Duration{-2 * time.Hour, 3 * time.Hour} {
		setAhead(want)
		for deadline := time.Now().Add(time.Minute); ahead(s) != want; {
			if time.Now().After(deadline) {
				t.Fatalf("the server is %v ahead, want %v", ahead(s), want)
			}
			s.due.changed()
			if _, _, err := s.Claim(t.Context(), queue.Claim{Now: s.Now(), Max: 1, Lease: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestServerClockBounds checks that an exchange changes the known time only as far as it
// proves that it is wrong.
func TestServerClockBounds(t *testing.T) {
	c := serverClock{start: time.Now()}
	if now := c.now(); !now.IsZero() {
		t.Errorf("a clock that was not read shows %v", now)
	}
	base := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name         string
		at           time.Duration // of the server's answer, since base
		began, ended time.Duration
		want         time.Duration // of c.base after base
	}{
		{"the first", 10 * time.Second, 9 * time.Second, 11 * time.Second, 0},
		{"a slow one proves nothing", 20 * time.Second, 15 * time.Second, 25 * time.Second, 0},
		{"at least a second ahead", 31 * time.Second, 29 * time.Second, 30 * time.Second, time.Second},
		{"at most half a second ahead", 40 * time.Second, 39500 * time.Millisecond, 41 * time.Second, 500 * time.Millisecond},
		{"set back by an hour", -time.Hour, 50 * time.Second, 51 * time.Second, -time.Hour - 50*time.Second},
	} {
		c.set(base.Add(tt.at), tt.began, tt.ended)
		if got := c.base.Sub(base); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if d := c.now().Sub(c.base.Add(time.Since(c.start))); d > 0 || d < -time.Minute {
		t.Errorf("the clock is %v wrong", d)
	}
}
