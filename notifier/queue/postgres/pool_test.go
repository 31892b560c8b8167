package postgres

import (
	"context"
	"testing"
)

// TestSessionOfItsOwn checks that a connection with its own session prepares each statement once,
// and stops doing so when a prepared statement is not found.
func TestSessionOfItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, sharedServer(t).schema(t))
	ask := func(forget bool) (prepared int) {
		t.Helper()
		err := s.do(t.Context(), func(ctx context.Context, c *conn, _ bool) error {
			if forget {
				if _, err := c.pg.Exec(ctx, "DEALLOCATE ALL").ReadAll(); err != nil {
					return err
				}
				forget = false
			}
			rows, err := c.query(ctx, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%pg_prepared_statements%'")
			if err == nil {
				prepared = int(number(rows[0][0]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return prepared
	}
	if n := ask(false); n != 1 {
		t.Errorf("%d statements are prepared in the session", n)
	}
	if n := ask(true); n != 0 { // as if it was another session
		t.Errorf("%d statements are prepared after one was not found", n)
	}
}
