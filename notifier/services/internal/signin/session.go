package signin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Session is what a service keeps between messages after it has signed in.
// The zero value is signed out.
type Session[T any] struct {
	// signOut, where it is set, ends a session that is not kept.
	SignOut func(context.Context, *notifier.Client, T) error

	cached notifier.Cached[T]
}

// Do runs f signed in. Where the service refuses a session that was kept
// from an earlier message, it signs in anew and runs f once more.
func (s *Session[T]) Do(ctx context.Context, c *notifier.Client, signIn func(context.Context) (T, time.Duration, error), f func(T) error) error {
	for {
		kept := true
		value, err := s.cached.Get(ctx, func(ctx context.Context) (T, time.Duration, error) {
			kept = false
			return signIn(ctx)
		})
		if err != nil {
			return err
		}
		err = f(value)
		if IsExpired(err) {
			s.cached.Drop(ctx)
			if kept {
				continue
			}
		} else if s.SignOut != nil && !c.Store() {
			s.cached.Drop(ctx)
			if err := s.SignOut(ctx, c, value); err != nil {
				c.Warn("signing out: %v", err)
			}
		}
		return err
	}
}

// ErrExpired marks the answer of a service that says by other means than
// its status code that it does not know the session.
var ErrExpired = errors.New("the service does not accept the session")

func IsExpired(err error) bool {
	return errors.Is(err, ErrExpired) ||
		slices.ContainsFunc(notifier.Statuses(err), func(s *notifier.StatusError) bool { return s.Code == 401 })
}
