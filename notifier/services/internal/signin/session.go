package signin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Session is the state that a service keeps between messages after it has
// signed in, such as a token. The zero value is signed out.
type Session[T any] struct {
	// SignOut ends a session that must not be kept because the URL has
	// store=no. It may be nil.
	SignOut func(context.Context, *notifier.Client, T) error

	// Saved is the name of the state that keeps the session, as JSON, over a
	// restart; empty to sign in after each start. See
	// [notifier.Client.SaveState].
	Saved string

	cached notifier.Cached[T]
}

// Do calls f with the session, which signIn opens and limits in time unless
// there is one. If the service rejects a session from an earlier message, Do
// signs in again and calls f once more.
func (s *Session[T]) Do(
	ctx context.Context, c *notifier.Client, signIn func(context.Context) (T, time.Duration, error), f func(T) error,
) error {
	for {
		reused := true
		value, err := s.get(ctx, c, func(ctx context.Context) (T, time.Duration, error) {
			reused = false
			return signIn(ctx)
		})
		if err != nil {
			return err
		}
		err = f(value)
		if IsExpired(err) {
			s.drop(ctx, c)
			if reused {
				continue
			}
		} else if s.SignOut != nil && !c.Store() {
			s.drop(ctx, c)
			if err := s.SignOut(ctx, c, value); err != nil {
				c.Warn("signing out: %v", err)
			}
		}
		return err
	}
}

func (s *Session[T]) get(ctx context.Context, c *notifier.Client, signIn func(context.Context) (T, time.Duration, error)) (T, error) {
	if s.Saved != "" {
		signIn = notifier.Saved(c, s.Saved, signIn)
	}
	return s.cached.Get(ctx, signIn)
}

func (s *Session[T]) drop(ctx context.Context, c *notifier.Client) {
	if s.Saved == "" {
		s.cached.Drop(ctx)
		return
	}
	s.cached.DropSaved(ctx, c, s.Saved)
}

// ErrExpired is for services that reject a session with another status than
// 401. If they reject a new session, too, no later attempt can succeed.
var ErrExpired = notifier.Denied(errors.New("the service does not accept the session"))

// IsExpired reports whether the service rejected the session: err is
// [ErrExpired] or an answer with status 401.
func IsExpired(err error) bool {
	return errors.Is(err, ErrExpired) ||
		slices.ContainsFunc(notifier.Statuses(err), func(s *notifier.StatusError) bool { return s.Code == 401 })
}
