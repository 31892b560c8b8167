package bolt

import (
	"testing"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Engine{New: func(t *testing.T) func(log *zap.Logger) (queue.Store, error) {
		dir := t.TempDir()
		return func(log *zap.Logger) (queue.Store, error) { return Open(Options{Path: dir, Logger: log, NoSync: true}) }
	}})
}
