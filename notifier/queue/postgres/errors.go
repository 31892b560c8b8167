package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// errStalled is returned while a server is left alone because it has not
// answered.
var errStalled = errors.New("the server does not answer")

// tooMany reports whether the server has refused a connection because there are
// too many.
func tooMany(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "53300" // too_many_connections
}

// readOnly reports whether the server cannot be written any more, for example
// because it has become a standby. Another connection may reach the new primary.
func readOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "25006" // read_only_sql_transaction
}

// conflicts reports whether a transaction has changed nothing and is to be repeated.
func conflicts(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01") || unprepared(err) // serialization_failure, deadlock_detected
}

// unprepared reports whether a statement was prepared in another session, or is prepared
// already in this one.
func unprepared(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "26000" || e.Code == "42P05") // invalid_sql_statement_name, duplicate_prepared_statement
}

// broken reports whether err means that the connection is lost. It is false for
// other answers of the server.
func broken(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P") // the server is shut down
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return !connecting && !known(err) && !errors.Is(err, errStalled) && !errors.Is(err, errUnconfirmed)
}

// known reports whether err has a meaning for callers of the store.
func known(err error) bool {
	for _, e := range []error{queue.ErrFull, queue.ErrNotFound, queue.ErrNotClaimed, queue.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	_, damaged := errors.AsType[*queue.DamagedError](err)
	_, duplicate := errors.AsType[*queue.DuplicateError](err)
	_, refused := errors.AsType[*refusedError](err)
	return damaged || duplicate || refused
}

// refusedError is an error of the store itself or of its caller, not of the server.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

func refusef(format string, args ...any) error { return &refusedError{fmt.Errorf(format, args...)} }

func unavailable(err error) error {
	if known(err) {
		return err
	}
	if _, ok := errors.AsType[*queue.UnavailableError](err); ok {
		return err
	}
	return &queue.UnavailableError{Err: err}
}
