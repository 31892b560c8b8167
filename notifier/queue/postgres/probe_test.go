package postgres

import (
	"strings"
	"testing"
	"time"
)

// TestProbe checks which databases a probe accepts for a queue. A probe changes nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.schema(t)
	for _, when := range []string{"before", "after"} {
		ahead, err := Probe(t.Context(), dsn)
		if err != nil || ahead.Abs() > time.Second {
			t.Errorf("%s the queue was opened: %s, %v", when, ahead, err)
		}
		if when == "before" {
			if _, err := Probe(t.Context(), dsn+"&default_transaction_read_only=on"); err == nil ||
				!strings.Contains(err.Error(), "takes no changes") {
				t.Errorf("a standby: %v", err)
			}
			execute(t, dsn, "CREATE TABLE notify_queue_messages_before (x INT)") // fails if the probe made tables
			open(t, dsn)
		}
	}
	role := server.role()
	execute(t, dsn, "CREATE ROLE "+role+" LOGIN")
	limited := dsn + "&role=" + role
	if _, err := Probe(t.Context(), limited); err == nil || !strings.Contains(err.Error(), "may not") &&
		!strings.Contains(err.Error(), "permission") {
		t.Errorf("a user without rights: %v", err)
	}
	if _, err := Probe(t.Context(), "postgres://user:secretsecret@127.0.0.1:1/db"); err == nil ||
		strings.Contains(err.Error(), "secretsecret") {
		t.Errorf("no server: %v", err)
	}
}
