// Package refusal records requests and mails that were refused.
package refusal

import (
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
)

// Record records a refusal in metrics, the history and a log.
func Record(s *dispatch.Dispatcher, f history.Refusal, l *Log, log *zap.Logger) {
	s.Metrics.Refused(f.Reason)
	s.History.AddRefusal(f)
	l.add(f, log)
}

// Log logs refusals: the first at once, and then at most one line a minute for each
// metrics.RefusalID. The zero value is ready for use.
type Log struct {
	mu   sync.Mutex
	byID map[metrics.RefusalID]*logged
}

// logged are the refusals with one metrics.RefusalID.
type logged struct {
	limiter loglimit.Limiter
	mu      sync.Mutex
	Last    history.Refusal
}

// add records a refusal and logs it, now or at the end of its minute.
func (l *Log) add(f history.Refusal, log *zap.Logger) {
	l.mu.Lock()
	if l.byID == nil {
		l.byID = map[metrics.RefusalID]*logged{}
	}
	same := l.byID[f.RefusalID]
	if same == nil {
		same = &logged{}
		l.byID[f.RefusalID] = same
	}
	l.mu.Unlock()
	same.mu.Lock()
	same.Last = f
	same.mu.Unlock()
	same.limiter.Add(1, func(n int) {
		same.mu.Lock()
		last := same.Last
		same.mu.Unlock()
		write(&last, log, n)
	})
}

// write logs the last of n refusals.
func write(f *history.Refusal, log *zap.Logger, n int) {
	fields := []zap.Field{
		zap.String("reason", f.Reason), zap.Int("status", f.Status), zap.String("error", f.Text),
		zap.String("client_ip", f.Client), zap.Int("count", n),
	}
	if f.Server != "" {
		fields = append(fields, zap.String("server", f.Server))
	}
	if f.Key != "" {
		fields = append(fields, zap.String("key", f.Key))
	}
	if f.Cause != "" {
		fields = append(fields, zap.String("cause", f.Cause))
	}
	log.Warn("request refused", fields...)
}
