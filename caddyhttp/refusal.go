package caddyhttp

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The reasons of refusals. A refusal is a request to send a message that is
// answered with an error and sends nothing. The reasons are the values of a
// metric's label.
const (
	refusalBadRequest    = "bad_request"            // 400
	refusalStateless     = "stateless_off"          // 403, a message without a key
	refusalOrigin        = "cross_origin"           // 403, a page of another site
	refusalForbidden     = "forbidden"              // any other 401 or 403
	refusalUnknownKey    = "unknown_key"            // 404
	refusalMethod        = "method_not_allowed"     // 405
	refusalTimeout       = "request_timeout"        // 408
	refusalTooLarge      = "too_large"              // 413
	refusalMediaType     = "unsupported_media_type" // 415
	refusalNoDestination = "no_destination"         // 424, no destination is chosen
	refusalOverloaded    = "overloaded"             // 503
	refusalStorage       = "no_disk_space"          // 507
	refusalLoop          = "loop"                   // 508
	refusalError         = "internal_error"         // 500
)

// refusalReasons are the reasons that follow from the status.
var refusalReasons = map[int]string{
	http.StatusUnauthorized:          refusalForbidden,
	http.StatusForbidden:             refusalForbidden,
	http.StatusNotFound:              refusalUnknownKey,
	http.StatusMethodNotAllowed:      refusalMethod,
	http.StatusRequestTimeout:        refusalTimeout,
	http.StatusRequestEntityTooLarge: refusalTooLarge,
	http.StatusUnsupportedMediaType:  refusalMediaType,
	http.StatusFailedDependency:      refusalNoDestination,
	http.StatusServiceUnavailable:    refusalOverloaded,
	http.StatusInsufficientStorage:   refusalStorage,
	http.StatusLoopDetected:          refusalLoop,
}

// allRefusalReasons are the values of the metric's label.
var allRefusalReasons = []string{
	refusalBadRequest, refusalStateless, refusalOrigin, refusalForbidden, refusalUnknownKey, refusalMethod, refusalTimeout,
	refusalTooLarge, refusalMediaType, refusalNoDestination, refusalOverloaded, refusalStorage, refusalLoop, refusalError,
}

// refusalReason returns the reason for a response with an error status. err is
// the error that led to it, if there is one.
func refusalReason(status int, err error) string {
	switch {
	case errors.Is(err, errStatelessOff):
		return refusalStateless
	case errors.Is(err, site.ErrCrossOrigin), errors.Is(err, site.ErrForeignChange):
		return refusalOrigin
	}
	if reason, ok := refusalReasons[status]; ok {
		return reason
	}
	if status >= 500 {
		return refusalError
	}
	return refusalBadRequest
}

// refusalID identifies refusals that are logged and listed as one. It holds
// nothing that a client chooses freely, so that there are few.
type refusalID struct {
	source string // site.SourceHTTP or site.SourceSMTP
	server string // the name of the HTTP server; "" if unknown
	site   string // the ID of the site
	key    string // "" for a message without a key, or with a key that does not exist
	reason string
}

// refusal is a request, or a command of a mail client, that was refused.
type refusal struct {
	refusalID
	time   time.Time
	status int    // of HTTP, or the code of SMTP
	text   string // the error that the client got
	cause  string // what the client did not get: the text of an error of the network or of a file; "" if there is none
	client string // its address; "" if unknown
}

// refuse records that r was answered with an error and sent nothing. name is
// the key in the address; it may not exist.
func (h *httpAPI) refuse(r *http.Request, name string, status int, text string, err error) {
	f := refusal{
		refusalID: refusalID{source: site.SourceHTTP, site: h.site(), reason: refusalReason(status, err)},
		time:      time.Now(), status: status, text: markup.TruncateBytes(text, maxHistoryText),
		cause: markup.TruncateBytes(errs.Private(err), maxHistoryText),
	}
	if _, err := h.resolved.Key(r.Context(), name); err == nil && name != "" {
		f.key = name
	}
	f.server, f.client = serverName(r), clientIP(r)
	h.shared.recordRefusal(f, &h.refusals, h.log)
}

// recordRefusal records a refusal in metrics, the history and a log.
func (s *shared) recordRefusal(f refusal, l *refusalLog, log *zap.Logger) {
	s.metrics.refused(f.reason)
	s.history.addRefusal(f)
	l.add(f, log)
}

// refusalLog logs refusals: the first at once, and then at most one line a
// minute for each refusalID. The zero value is ready for use.
type refusalLog struct {
	mu   sync.Mutex
	byID map[refusalID]*loggedRefusals
}

// loggedRefusals are the refusals with one refusalID.
type loggedRefusals struct {
	limiter site.LogLimiter
	mu      sync.Mutex
	last    refusal
}

// add records a refusal and logs it, now or when its minute is over.
func (l *refusalLog) add(f refusal, log *zap.Logger) {
	l.mu.Lock()
	if l.byID == nil {
		l.byID = map[refusalID]*loggedRefusals{}
	}
	same := l.byID[f.refusalID]
	if same == nil {
		same = &loggedRefusals{}
		l.byID[f.refusalID] = same
	}
	l.mu.Unlock()
	same.mu.Lock()
	same.last = f
	same.mu.Unlock()
	same.limiter.Add(1, func(n int) {
		same.mu.Lock()
		last := same.last
		same.mu.Unlock()
		last.log(log, n)
	})
}

// log logs the last of n refusals.
func (f *refusal) log(log *zap.Logger, n int) {
	fields := []zap.Field{
		zap.String("reason", f.reason), zap.Int("status", f.status), zap.String("error", f.text),
		zap.String("client_ip", f.client), zap.Int("count", n),
	}
	if f.server != "" {
		fields = append(fields, zap.String("server", f.server))
	}
	if f.key != "" {
		fields = append(fields, zap.String("key", f.key))
	}
	if f.cause != "" {
		fields = append(fields, zap.String("cause", f.cause))
	}
	log.Warn("request refused", fields...)
}
