package api

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

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
