package queuetest_test

import (
	"testing"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

// A test of a store calls Run. Here the store is that of package bolt.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T) {
		queuetest.Run(t, queuetest.Engine{New: func(t *testing.T) func(*zap.Logger) (queue.Store, error) {
			dir := t.TempDir()
			return func(log *zap.Logger) (queue.Store, error) { return bolt.Open(bolt.Options{Path: dir, Logger: log}) }
		}})
	}
	// Output:
}
