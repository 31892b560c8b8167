package httpapi

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// refusalReasons are the reasons that follow from the status.
var refusalReasons = map[int]string{
	http.StatusUnauthorized:          metrics.RefusalForbidden,
	http.StatusForbidden:             metrics.RefusalForbidden,
	http.StatusNotFound:              metrics.RefusalUnknownKey,
	http.StatusMethodNotAllowed:      metrics.RefusalMethod,
	http.StatusRequestTimeout:        metrics.RefusalTimeout,
	http.StatusRequestEntityTooLarge: metrics.RefusalTooLarge,
	http.StatusUnsupportedMediaType:  metrics.RefusalMediaType,
	http.StatusFailedDependency:      metrics.RefusalNoDestination,
	http.StatusServiceUnavailable:    metrics.RefusalOverloaded,
	http.StatusInsufficientStorage:   metrics.RefusalStorage,
	http.StatusLoopDetected:          metrics.RefusalLoop,
}

// RefusalReason returns the reason for a response with an error status. err is
// the error that led to it, if there is one.
func RefusalReason(status int, err error) string {
	switch {
	case errors.Is(err, errStatelessOff):
		return metrics.RefusalStateless
	case errors.Is(err, site.ErrCrossOrigin), errors.Is(err, errForeignChange):
		return metrics.RefusalOrigin
	}
	if reason, ok := refusalReasons[status]; ok {
		return reason
	}
	if status >= 500 {
		return metrics.RefusalError
	}
	return metrics.RefusalBadRequest
}

// Refuse records that r was answered with an error and sent nothing. The key, which r names,
// may not exist.
func (h *Base) Refuse(r *http.Request, key *Lookup, status int, text string, err error) {
	f := history.Refusal{
		RefusalID: metrics.RefusalID{Source: site.SourceHTTP, Site: h.Site(), Reason: RefusalReason(status, err)},
		Time:      time.Now(), Status: status, Text: markup.TruncateBytes(text, history.MaxHistoryText),
		Cause: markup.TruncateBytes(errs.Private(err), history.MaxHistoryText),
	}
	if key.Name != "" {
		if _, err := key.Key(r.Context()); err == nil {
			f.Key = key.Name
		}
	}
	f.Server, f.Client = serverName(r), ClientIP(r)
	RecordRefusal(h.Shared, f, &h.Refusals, h.Log)
}

// RecordRefusal records a refusal in metrics, the history and a log.
func RecordRefusal(s *dispatch.Dispatcher, f history.Refusal, l *RefusalLog, log *zap.Logger) {
	s.Metrics.Refused(f.Reason)
	s.History.AddRefusal(f)
	l.add(f, log)
}

// RefusalLog logs refusals: the first at once, and then at most one line a
// minute for each metrics.RefusalID. The zero value is ready for use.
type RefusalLog struct {
	mu   sync.Mutex
	ByID map[metrics.RefusalID]*loggedRefusals
}

// loggedRefusals are the refusals with one metrics.RefusalID.
type loggedRefusals struct {
	limiter loglimit.Limiter
	mu      sync.Mutex
	Last    history.Refusal
}

// add records a refusal and logs it, now or when its minute is over.
func (l *RefusalLog) add(f history.Refusal, log *zap.Logger) {
	l.mu.Lock()
	if l.ByID == nil {
		l.ByID = map[metrics.RefusalID]*loggedRefusals{}
	}
	same := l.ByID[f.RefusalID]
	if same == nil {
		same = &loggedRefusals{}
		l.ByID[f.RefusalID] = same
	}
	l.mu.Unlock()
	same.mu.Lock()
	same.Last = f
	same.mu.Unlock()
	same.limiter.Add(1, func(n int) {
		same.mu.Lock()
		last := same.Last
		same.mu.Unlock()
		logRefusal(&last, log, n)
	})
}

// logRefusal logs the last of n refusals.
func logRefusal(f *history.Refusal, log *zap.Logger, n int) {
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
