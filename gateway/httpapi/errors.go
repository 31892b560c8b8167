package httpapi

import (
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// statuses are the errors of use cases that say themselves what is wrong, with their
// statuses.
var statuses = []struct {
	err    error
	status int
}{
	{rules.ErrNoSilence, http.StatusNotFound},
	{rules.ErrTooManySilences, http.StatusConflict},
	{rules.ErrWindowSilence, http.StatusConflict},
	{device.ErrInvitation, http.StatusForbidden},
	{device.ErrTooMany, http.StatusConflict},
	{device.ErrUnknown, http.StatusNotFound},
	{device.ErrNone, http.StatusUnauthorized},
}

// Answer returns what a client is answered after an error of a use case: of silences,
// incidents, devices, inboxes, messages and saved keys. It is nil for nil, and otherwise an
// [*api.Error]. The HTTP API, the pages and the admin API all use it. An error that it does
// not know is one of the queue's store.
func Answer(err error) error {
	if err == nil {
		return nil
	}
	if unread, ok := errors.AsType[*outbox.ReadError](err); ok {
		e := api.Errorf(http.StatusServiceUnavailable, "the gateway cannot read the queue at the moment; try again in %s", outbox.QueueRetryAfter)
		e.Fault, e.RetryAfter = unread.Err, outbox.QueueRetryAfter
		return e
	}
	if _, ok := api.ErrorOf(err); ok {
		return err
	}
	if _, ok := errors.AsType[saved.LineErrors](err); ok {
		return api.Errorf(http.StatusBadRequest, "the configuration is not saved: %w", err)
	}
	if _, ok := errors.AsType[*device.NumberedError](err); ok {
		return &api.Error{Status: http.StatusBadRequest, Err: err}
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return &api.Error{Status: s.status, Err: s.err}
		}
	}
	switch {
	case errors.Is(err, device.ErrPushKeyLost):
		return api.Errorf(http.StatusServiceUnavailable, "no device can be added at the moment; the log of the gateway tells its operator why")
	case errors.Is(err, device.ErrDamaged):
		return api.Errorf(http.StatusServiceUnavailable, "the devices of this key cannot be read; the log of the gateway tells its operator why")
	case errors.Is(err, inbox.ErrTooManyListeners):
		e := api.Errorf(http.StatusTooManyRequests,
			"%d clients follow the inbox of this key at this gateway already, which is the limit; end one of them", inbox.MaxListeners)
		e.RetryAfter = outbox.QueueRetryAfter
		return e
	}
	return outbox.ErrQueueUnavailable(err)
}
