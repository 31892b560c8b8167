package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/refusal"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// refusalReasons are the reasons by status.
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

// RefusalReason returns the reason for a response with an error status. err is the error behind it,
// or nil.
func RefusalReason(status int, err error) string {
	switch {
	case errors.Is(err, errStatelessOff):
		return metrics.RefusalStateless
	case errors.Is(err, api.ErrCrossOrigin), errors.Is(err, errForeignChange):
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

// Refuse records that r was answered with an error and sent nothing. The key in r may not exist.
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
	f.Server, f.Client = environment.Server(r), environment.ClientIP(r)
	refusal.Record(h.Shared, f, &h.Refusals, h.Log)
}
