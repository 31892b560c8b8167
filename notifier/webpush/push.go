package webpush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Push is a message for a subscription.
type Push struct {
	Payload []byte // at most [MaxPayload] bytes
	TTL     int    // for how many seconds a push service keeps it for a browser that is offline
	Urgency string // such as UrgencyHigh; "" for normal
	Topic   string // replaces a message with the same topic that waits for the browser; "" for none
	Contact string // address of the operator, which begins with mailto: or https:
}

// Values of Urgency.
const (
	UrgencyHigh = "high" // also to a browser that saves energy
	UrgencyLow  = "low"  // for a browser with power and Wi-Fi
)

// MaxTTL is the longest time in seconds for which push services keep a message: 28 days.
const MaxTTL = 28 * 24 * 3600

// Send sends a message to a subscription.
func (k *Key) Send(ctx context.Context, c *notifier.Client, s *Subscription, p *Push) error {
	body, err := s.encrypt(p.Payload)
	if err != nil {
		return err
	}
	authorization, err := k.authorization(s.origin(), p.Contact)
	if err != nil {
		return err
	}
	header := map[string]string{"Authorization": authorization, "Content-Encoding": "aes128gcm", "TTL": strconv.Itoa(p.TTL)}
	if p.Urgency != "" {
		header["Urgency"] = p.Urgency
	}
	if p.Topic != "" {
		header["Topic"] = p.Topic
	}
	_, err = c.Do(ctx, &notifier.Request{URL: s.Endpoint, Header: header, Body: notifier.Bytes("application/octet-stream", body)})
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && (status.Code == 404 || status.Code == 410) {
		return &GoneError{err}
	}
	return err
}

// Refusal returns how a push service has answered that it does not take a push, now or later, or ""
// if err is not such an answer.
func Refusal(err error) string {
	status, ok := errors.AsType[*notifier.StatusError](err)
	if !ok || status.Code/100 != 4 || status.Code == http.StatusRequestTimeout || status.Code == http.StatusTooManyRequests {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("its push service answers %d %s", status.Code, http.StatusText(status.Code)))
}

// GoneError is returned when the browser no longer has the subscription.
type GoneError struct{ err error }

func (e *GoneError) Error() string {
	return fmt.Sprintf("the browser no longer has the subscription; subscribe again: %v", e.err)
}

// Unwrap returns the error of the push service.
func (e *GoneError) Unwrap() error { return e.err }
