package api

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"mime"
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

var errLoop = Errorf(http.StatusLoopDetected,
	"the message has passed through too many gateways (X-Apprise-Recursion-Count above %d); check that they do not send to each other in a "+
		"circle", maxHops)

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
var ErrCrossOrigin = Errorf(http.StatusForbidden,
	"a page of another site sent this message; the operator can allow its origin with trusted_origins")

// The media types of responses.
const (
	mediaText   = "text/plain"
	mediaJSON   = "application/json"
	mediaHTML   = "text/html"
	mediaStream = "application/x-ndjson" // see Stream
)

// sendsJSON reports whether r says that its body is JSON.
func sendsJSON(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // with a malformed parameter, media is still set
	return isJSON(media)
}

// PrefersHTML reports whether the Accept headers of r prefer text/html, as a browser's do.
func PrefersHTML(r *http.Request) bool { return negotiate(r) == mediaHTML }

// accepts reports whether r has an Accept header that is not blank.
func accepts(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Accept"], func(v string) bool { return strings.TrimSpace(v) != "" })
}

// negotiate returns the media type that the Accept headers of r prefer (RFC 9110, section 12.5.1):
// the one with the highest quality, then the most specific, then the first. If all are equally
// welcome, as with */*, it returns JSON for a JSON request, else plain text. If none is accepted,
// it returns plain text.
func negotiate(r *http.Request) string {
	if !accepts(r) {
		return mediaText
	}
	ranges := parseAccept(strings.Join(r.Header["Accept"], ","))
	offered := [...]string{mediaText, mediaJSON, mediaHTML, mediaStream}
	if sendsJSON(r) {
		offered[0], offered[1] = mediaJSON, mediaText
	}
	best, bestRange := mediaText, acceptRange{}
	for _, media := range offered {
		if r := matchRange(media, ranges); r.betterThan(bestRange) {
			best, bestRange = media, r
		}
	}
	return best
}

// acceptRange is one element of an Accept header. The zero value accepts
// nothing.
type acceptRange struct {
	media       string  // type/subtype, type/* or */*, in lower case
	specificity int     // 3, 2 or 1, in that order
	quality     float64 // 0 to 1
	position    int     // in the header
}

func (r acceptRange) betterThan(o acceptRange) bool {
	switch {
	case r.quality != o.quality:
		return r.quality > o.quality
	case r.specificity != o.specificity:
		return r.specificity > o.specificity
	}
	return r.position < o.position
}

// matchRange returns the most specific range that matches a media type.
func matchRange(media string, ranges []acceptRange) (best acceptRange) {
	major, _, _ := strings.Cut(media, "/")
	for _, r := range ranges {
		if (r.media == media || r.media == major+"/*" || r.media == "*/*") && r.specificity > best.specificity {
			best = r
		}
	}
	if best.quality == 0 {
		return acceptRange{}
	}
	return best
}

// parseAccept parses an Accept header. It skips malformed elements.
func parseAccept(header string) (out []acceptRange) {
	for i, element := range splitUnquoted(header, ',') {
		params := splitUnquoted(element, ';')
		r := acceptRange{media: strings.ToLower(strings.TrimSpace(params[0])), quality: 1, position: i}
		major, minor, ok := strings.Cut(r.media, "/")
		switch {
		case !ok || major == "" || minor == "" || major == "*" && minor != "*":
			continue
		case major == "*":
			r.specificity = 1
		case minor == "*":
			r.specificity = 2
		default:
			r.specificity = 3
		}
		for _, p := range params[1:] {
			name, value, _ := strings.Cut(p, "=")
			if strings.EqualFold(strings.TrimSpace(name), "q") {
				q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				ok = err == nil && q >= 0 && q <= 1
				r.quality = q
				break // parameters after q are extensions
			}
		}
		if ok {
			out = append(out, r)
		}
	}
	return out
}

// splitUnquoted splits s at each sep outside of quotes.
func splitUnquoted(s string, sep byte) (out []string) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == sep:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}
