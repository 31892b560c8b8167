package api

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// IdempotencyHeader is the header with a client's key for a message: a request
// with the same key is the same message again.
const IdempotencyHeader = "Idempotency-Key"

// maxIdempotencyKey is the length of such a key in bytes.
const maxIdempotencyKey = 255

// IdempotencyKey returns the idempotency key of r, or "". It returns a 400 if
// there are several or the key is too long.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(IdempotencyHeader)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badRequest("the request has %d headers %s; send one", len(values), IdempotencyHeader)
	case values[0] == "" || len(values[0]) > maxIdempotencyKey:
		return "", badRequest("the header %s must have 1 to %d bytes", IdempotencyHeader, maxIdempotencyKey)
	}
	return values[0], nil
}

// Fingerprint returns a hash of the content of the request. Repeated requests
// have the same hash, different ones have different hashes. It must be called
// before [Request.Attachments].
func (q *Request) Fingerprint() ([]byte, error) {
	h := fingerprint{sha256.New()}
	for _, name := range slices.Sorted(maps.Keys(q.content.fields)) {
		f := q.content.fields[name]
		if !isField(name) && !templateField.MatchString(name) || f.absent() {
			continue
		}
		h.add(name, string(f.json), fmt.Sprint(len(f.texts)))
		h.add(f.texts...)
	}
	for _, name := range slices.Sorted(maps.Keys(q.content.query)) {
		h.add(name, fmt.Sprint(len(q.content.query[name])))
		h.add(q.content.query[name]...)
	}
	for _, a := range q.files.attached {
		h.add(a.Name, a.ContentType, fmt.Sprint(a.Size))
		if _, err := io.Copy(h, a.Open()); err != nil {
			return nil, fmt.Errorf("reading an attachment: %w", err)
		}
	}
	return h.Sum(nil), nil
}

// fingerprint hashes texts so that different lists of texts have different
// hashes.
type fingerprint struct{ hash.Hash }

func (h fingerprint) add(texts ...string) {
	for _, s := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // a hash takes everything
		_, _ = io.WriteString(h, s)
	}
}

// maxPreferredWait is the longest time that a client can ask to wait for the results.
const maxPreferredWait = time.Minute

// Preference holds the preferences in the header Prefer of a request (RFC
// 7240).
type Preference struct {
	// Async means that the client accepts a 202 for a message that is queued. The
	// other field is zero unless it is set.
	Async bool

	// Wait is how long the client wants to wait for the results.
	Wait time.Duration
}

// ParsePrefer reads the preferences respond-async and wait (RFC 7240, sections
// 4.1 and 4.3). respond-async alone stands for wait=0. A wait of more than a
// minute is a minute. Other preferences, and malformed ones, are ignored.
func ParsePrefer(h http.Header) (p Preference) {
	if len(h["Prefer"]) == 0 {
		return p
	}
	hasWait := false
	for _, element := range splitUnquoted(strings.Join(h.Values("Prefer"), ","), ',') {
		element, _, _ = strings.Cut(element, ";")
		name, value, _ := strings.Cut(element, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.Async = true
		case "wait":
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil && !hasWait { // of repeated preferences, the first counts
				p.Async, p.Wait, hasWait = true, min(time.Duration(n)*time.Second, maxPreferredWait), true
			}
		}
	}
	return p
}

// applied returns the value of the header Preference-Applied for a 202.
func (p Preference) applied() string {
	if p.Wait > 0 {
		return "respond-async, wait=" + strconv.Itoa(int(p.Wait.Seconds()))
	}
	return "respond-async"
}

// maxHops bounds the gateways that a message may have passed through.
const maxHops = 1

// Hops returns how many gateways the message of r has passed through. Gateways send the number in
// the header X-Apprise-Recursion-Count. This gateway also sends it in the User-Agent, because every
// service can send that; product is the part of the User-Agent that identifies a gateway. If the
// number is too high, the error is a 508, so that no message circulates.
func Hops(r *http.Request, product string) (int, error) {
	own := notifier.HopsOf(r.UserAgent(), product) + 1
	text := "0"
	if values := r.Header.Values(notifier.HopsHeader); len(values) > 0 {
		text = strings.TrimSpace(values[0])
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, badRequest("the header X-Apprise-Recursion-Count must be a whole number, 0 or more")
	}
	n, err := strconv.Atoi(text) // it fails only if the number is too large
	if n = max(n, own); err != nil || n > maxHops {
		return 0, errLoop
	}
	return n, nil
}

var errLoop = Errorf(http.StatusLoopDetected, "the message has passed through too many gateways (X-Apprise-Recursion-Count above %d); check that they do not send to each other in a circle", maxHops)

// OriginCheck protects against cross-site request forgery, in which a page of another site sends
// messages through a visitor's browser, with the visitor's password or network. It relies on
// headers that only browsers set: Sec-Fetch-Site or, in older ones, Origin. The zero value checks
// nothing.
type OriginCheck struct{ protection *http.CrossOriginProtection }

// NewOriginCheck returns the check for a site, which lets pages of its trusted origins send.
func NewOriginCheck(s *site.Site) (c OriginCheck) {
	if len(s.TrustedOrigins) == 1 && s.TrustedOrigins[0] == site.AnyOrigin {
		return c
	}
	c.protection = http.NewCrossOriginProtection()
	for _, origin := range s.TrustedOrigins {
		_ = c.protection.AddTrustedOrigin(origin) // site.New has checked the origin
	}
	return c
}

// CheckOrigin returns a 403 if a page of another site sent r.
func (c OriginCheck) CheckOrigin(r *http.Request) error {
	if c.protection == nil || c.protection.Check(r) == nil {
		return nil
	}
	return ErrCrossOrigin
}

// ErrCrossOrigin is returned for a message of a page that may not send.
var ErrCrossOrigin = Errorf(http.StatusForbidden, "a page of another site sent this message; the operator can allow its origin with trusted_origins")
