package http1

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// begin sends a request to s and returns the answer, whose body has not been read:
// the connection is not idle.
func begin(t *testing.T, c *Client, s *server) *http.Response {
	t.Helper()
	resp, err := c.RoundTrip(s.request(t, "GET", "/", ""))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// end reads the body of resp.
func end(t *testing.T, resp *http.Response) {
	t.Helper()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	_ = resp.Body.Close()
}

// hosts returns the hosts of the idle connections, the newest first.
func hosts(c *Client) (list []string) {
	for conn := c.idle.newest; conn != nil; conn = conn.older {
		list = append(list, conn.host)
	}
	return list
}

// At most MaxIdle connections stay open. The one that has been idle for the
// longest time is closed.
func TestMaxIdle(t *testing.T) {
	c := newClient(t)
	c.MaxIdle = 3
	servers := []*server{serve(t, always(ok)), serve(t, always(ok)), serve(t, always(ok))}
	a, b, d := servers[0], servers[1], servers[2]
	var open []*http.Response
	for _, s := range []*server{a, b, a, d, a, b} {
		open = append(open, begin(t, c, s))
	}
	want := [][]string{
		{a.address},
		{b.address, a.address},
		{a.address, b.address, a.address},
		{d.address, a.address, b.address},
		{a.address, d.address, a.address},
		{b.address, a.address, d.address},
	}
	for i, resp := range open {
		end(t, resp)
		if got := hosts(c); len(got) != len(want[i]) {
			t.Errorf("%d: %q, want %q", i, got, want[i])
		} else {
			for j := range got {
				if got[j] != want[i][j] {
					t.Errorf("%d: %q, want %q", i, got, want[i])
				}
			}
		}
	}
	// The connections that stay are used again.
	for _, s := range servers {
		end(t, begin(t, c, s))
	}
	if _, conns := a.got(); conns != 3 || idle(c) != 3 {
		t.Errorf("%d connections, %d idle", conns, idle(c))
	}
	c.CloseIdle()
	if idle(c) != 0 || len(c.idle.byHost) != 0 {
		t.Errorf("%d idle connections, %d hosts", idle(c), len(c.idle.byHost))
	}
}

// The newest connection is used first, so that the others can end.
func TestNewestFirst(t *testing.T) {
	s := serve(t, always(ok))
	c := newClient(t)
	open := []*http.Response{begin(t, c, s), begin(t, c, s), begin(t, c, s)}
	for _, resp := range open {
		end(t, resp)
	}
	newest := c.idle.newest
	for range 3 {
		end(t, begin(t, c, s))
		if c.idle.newest != newest {
			t.Error("another connection was used")
		}
	}
	if _, conns := s.got(); conns != 3 {
		t.Errorf("%d connections", conns)
	}
}

// An idle connection is closed after IdleTimeout, without another request.
func TestIdleTimeout(t *testing.T) {
	s := serve(t, always(ok))
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		c.IdleTimeout = 90 * time.Second
		open := []*http.Response{begin(t, c, s), begin(t, c, s), begin(t, c, s)}
		check := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := idle(c); got != want {
				t.Errorf("%d idle connections, want %d", got, want)
			}
		}
		end(t, open[0])
		time.Sleep(50 * time.Second)
		end(t, open[1])
		time.Sleep(20 * time.Second)
		end(t, open[2])
		check(3)
		time.Sleep(19 * time.Second)
		check(3)
		time.Sleep(time.Second)
		check(2)
		end(t, begin(t, c, s)) // with the newest
		time.Sleep(49 * time.Second)
		check(2)
		time.Sleep(time.Second)
		check(1)
		time.Sleep(time.Hour)
		check(0)
		if c.idle.timer != nil {
			t.Error("a timer without a connection")
		}
		end(t, begin(t, c, s))
		time.Sleep(90 * time.Second)
		check(0)
	})
	if _, conns := s.got(); conns != 4 {
		t.Errorf("%d connections", conns)
	}
}

// The clock of an idle connection goes on while the machine sleeps.
func TestIdleTimeoutOfTheWallClock(t *testing.T) {
	s := serve(t, always(ok))
	c := newClient(t)
	end(t, begin(t, c, s))
	c.idle.newest.since = c.idle.newest.since.Round(0).Add(-c.IdleTimeout)
	end(t, begin(t, c, s))
	if _, conns := s.got(); conns != 2 {
		t.Errorf("%d connections", conns)
	}
}

// After CloseIdle, connections are closed when their request ends, until there is
// another request.
func TestCloseIdle(t *testing.T) {
	s := serve(t, always(ok))
	c := newClient(t)
	first, second := begin(t, c, s), begin(t, c, s)
	end(t, first)
	c.CloseIdle()
	if idle(c) != 0 || c.idle.timer != nil {
		t.Error("an idle connection is open")
	}
	end(t, second)
	if idle(c) != 0 {
		t.Error("the connection of an open request stays open")
	}
	end(t, begin(t, c, s))
	if idle(c) != 1 {
		t.Error("the connection of a new request is closed")
	}
}
