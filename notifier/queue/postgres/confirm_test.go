package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestStandbyHangs checks that a message which only the primary has stored is not accepted,
// whether it is new or sent again, since it is lost with the primary. An attempt that ends
// makes the server commit without its standby.
func TestStandbyHangs(t *testing.T) {
	t.Parallel()
	dsn := ownServer(t).database(t)
	s := open(t, dsn)
	standby := func(name string) {
		execute(t, dsn, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		execute(t, dsn, "SELECT pg_reload_conf()::TEXT")
	}
	first, again := newEntry("text", "a"), newEntry("text", "a")
	first.Message.Key, again.Message.Key = "the same", "the same"
	standby("absent")
	if err := s.Accept(t.Context(), 1<<40, first); err == nil {
		t.Error("a message was accepted that no standby has")
	}
	if rows := execute(t, dsn, "SELECT 1::TEXT FROM notify_queue_messages")[0].Rows; len(rows) != 1 {
		t.Errorf("the primary has %d messages; the test needs the one that was not accepted", len(rows))
	}
	if err := s.Accept(t.Context(), 1<<40, again); err == nil {
		t.Error("a message was accepted again that no standby has")
	} else if _, ok := errors.AsType[*queue.DuplicateError](err); ok {
		t.Errorf("%v, but no standby has the first message", err)
	}
	standby("")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err := s.Accept(t.Context(), 1<<40, again)
		if _, rests := errors.AsType[*queue.UnavailableError](err); rests {
			continue // the server is left alone for a while
		}
		if _, ok := errors.AsType[*queue.DuplicateError](err); !ok {
			t.Errorf("after the standby is gone: %v", err)
		}
		return
	}
	t.Error("messages are not stored again")
}
