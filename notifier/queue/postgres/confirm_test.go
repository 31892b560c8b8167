package postgres

import (
	"errors"
	"fmt"
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
	standby("absent")
	again, sent := newEntry("text", "a"), 0
	for end := time.Now().Add(time.Minute); ; { // the server knows of the standby after a moment
		if time.Now().After(end) {
			t.Fatal("messages were accepted that no standby has")
		}
		sent++
		first := newEntry("text", "a")
		first.Message.Key = fmt.Sprint(sent)
		again.Message.Key = first.Message.Key
		if s.Accept(t.Context(), 1<<40, first) != nil {
			break
		}
	}
	if rows := execute(t, dsn, "SELECT 1::TEXT FROM notify_queue_messages")[0].Rows; len(rows) != sent {
		t.Errorf("the primary has %d messages; the test needs all %d, with the one that was not accepted", len(rows), sent)
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
