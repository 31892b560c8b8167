package postgres

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestBadDSN checks that the error for a connection string that cannot be read tells what
// is wrong, with the host and without the password.
func TestBadDSN(t *testing.T) {
	t.Parallel()
	const password = "hidden-password"
	for _, tt := range []struct{ dsn, want string }{
		{"postgres://user:hidden-password@db1:port/db", "db1"},
		{"postgres://user:hidden-password@d b1/db", "d b1"},
		{"postgres://user:hidden-password%@db1/db", "db1"},
		{"postgres://user:hidden-password@db1,db2:port/db", "db2"},
		{"postgres://user:hidden-password@db1/db?sslmode=wrong", "sslmode"},
		{"postgres://user:hidden-password@db1/db?pool_max_conns=1", "pool_max_conns"},
		{"postgres://db1/db?password=hidden-password&port=x", "db1"},
		{"host=db1 password=hidden-password port=x", "db1"},
		{"host=db1 password='hidden-password' port=x", "db1"},
		{"host=db1 password = 'hidden-password' port=x", "db1"},
		{"host=db1 password ='a b\\'hidden-password' port=x", "db1"},
		{"host=db1 password = hidden-password port", "db1"},
		{"host=db1 password = 'hidden-password port=1", "host=db1"},
		{"host=db1 sslpassword = hidden-password port=x", "db1"},
		{"mysql://user:hidden-password@db1/db", "postgres://"},
		{"user:hidden-password@db1/db", "postgres://"},
		{"hidden-password", "postgres://"},
	} {
		err := Check(tt.dsn)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.dsn, err, tt.want)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error has the password: %v", tt.dsn, err)
		}
	}
}

// TestUnusableServer checks that what is logged or returned about a server that cannot be
// used names it, without the password.
func TestUnusableServer(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	dsn := server.database(t)
	open(t, dsn).Close()
	withPassword := func(dsn string) string { return strings.Replace(dsn, "postgres@", "postgres:hidden-password@", 1) }
	address := strings.TrimSuffix(dsn[strings.Index(dsn, "@")+1:strings.LastIndex(dsn, "?")],
		dsn[strings.LastIndex(dsn, "/"):strings.LastIndex(dsn, "?")])
	standby := withPassword(dsn) + "&default_transaction_read_only=on"
	for _, tt := range []struct{ name, dsn, secret, want string }{
		{"unknown host", strings.Replace(withPassword(dsn), "127.0.0.1", "db.invalid", 1), secret, "db.invalid"},
		{"refused", "postgres://postgres:hidden-password@127.0.0.1:1/db?sslmode=disable", secret, "127.0.0.1:1"},
		{"standby", standby, secret, address + " is a standby"},
		{"standby that is not asked for", standby + "&target_session_attrs=read-write", secret, address},
		{
			"another secret", withPassword(dsn), "another secret of that length",
			address + ": the tables of the queue were created with another secret",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.ErrorLevel)
			s, err := Open(t.Context(), Options{DSN: tt.dsn, Secret: tt.secret, Logger: zap.New(core)})
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				s.Close()
			}
			if (err != nil) != errors.Is(err, errSecret) {
				t.Errorf("a server that may become usable is an error: %v", err)
			}
			for _, e := range logs.All() {
				if err, ok := e.ContextMap()["error"].(string); ok {
					text += err
				}
			}
			if !strings.Contains(text, tt.want) {
				t.Errorf("%q, want %q", text, tt.want)
			}
			if strings.Contains(text, "hidden-password") {
				t.Errorf("%q has the password", text)
			}
		})
	}
}
