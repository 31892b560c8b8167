package sealed

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

const secret = "a secret of the tests"

// TestConformance runs the tests of stores with one that is sealed.
func TestConformance(t *testing.T) {
	t.Parallel()
	const sizes = "what is sealed is larger than the sizes that the test expects"
	skip := map[string]string{"Full": sizes, "RecordSizes": sizes, "ForgetBySize": sizes, "Stats": sizes}
	queuetest.Run(t, queuetest.Engine{Skip: skip, New: func(t *testing.T) func(log *zap.Logger) (queue.Store, error) {
		dir := t.TempDir()
		return func(log *zap.Logger) (queue.Store, error) {
			store, err := bolt.Open(bolt.Options{Path: dir, Logger: log, NoSync: true})
			if err != nil {
				return nil, err
			}
			return New(context.Background(), store, log, secret)
		}
	}})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	queuetest.Secrets(t, func(t *testing.T, later bool, secret string, older ...string) (queue.Store, error) {
		store, err := bolt.Open(bolt.Options{Path: dir, NoSync: true})
		if err != nil {
			return nil, err
		}
		s, err := New(t.Context(), store, nil, secret, older...)
		if err != nil {
			store.Close()
			return nil, err
		}
		if later {
			s.later = time.Hour
		}
		return s, nil
	})
}
