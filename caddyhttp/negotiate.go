package caddyhttp

import (
	"strconv"
	"strings"
)

// The media types of answers.
const (
	mediaText = "text/plain"
	mediaJSON = "application/json"
	mediaHTML = "text/html"
)

// negotiate chooses the media type of the answer by the Accept headers of a
// request (RFC 9110, section 12.5.1): the highest quality wins; of equal ones
// the one that is named most precisely, then the one that is named first, then
// plain text. What cannot be satisfied gets plain text.
func negotiate(accept []string) string {
	ranges := acceptRanges(strings.Join(accept, ","))
	best, of := mediaText, acceptRange{}
	for _, media := range []string{mediaText, mediaJSON, mediaHTML, mediaStream} {
		if r := rangeFor(media, ranges); r.betterThan(of) {
			best, of = media, r
		}
	}
	return best
}

// acceptRange is one item of an Accept header. The zero value accepts nothing.
type acceptRange struct {
	media   string  // type/subtype, type/* or */*, in lower case
	precise int     // 3, 2 or 1, in that order
	quality float64 // 0 to 1
	place   int     // within the header
}

func (r acceptRange) betterThan(o acceptRange) bool {
	switch {
	case r.quality != o.quality:
		return r.quality > o.quality
	case r.precise != o.precise:
		return r.precise > o.precise
	}
	return r.place < o.place
}

// rangeFor is the most precise range that a media type falls in; it decides
// on the type's quality.
func rangeFor(media string, ranges []acceptRange) (best acceptRange) {
	major, _, _ := strings.Cut(media, "/")
	for _, r := range ranges {
		if (r.media == media || r.media == major+"/*" || r.media == "*/*") && r.precise > best.precise {
			best = r
		}
	}
	if best.quality == 0 {
		return acceptRange{}
	}
	return best
}

// acceptRanges reads an Accept header. Items that are malformed count as
// absent.
func acceptRanges(header string) (out []acceptRange) {
	for i, item := range splitQuoted(header, ',') {
		params := splitQuoted(item, ';')
		r := acceptRange{media: strings.ToLower(strings.TrimSpace(params[0])), quality: 1, place: i}
		major, minor, ok := strings.Cut(r.media, "/")
		switch {
		case !ok || major == "" || minor == "" || major == "*" && minor != "*":
			continue
		case major == "*":
			r.precise = 1
		case minor == "*":
			r.precise = 2
		default:
			r.precise = 3
		}
		for _, p := range params[1:] {
			name, value, _ := strings.Cut(p, "=")
			if strings.EqualFold(strings.TrimSpace(name), "q") {
				q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				ok = err == nil && q >= 0 && q <= 1
				r.quality = q
				break // what follows belongs to no media type
			}
		}
		if ok {
			out = append(out, r)
		}
	}
	return out
}

// splitQuoted splits at a character that does not stand within quotes.
func splitQuoted(s string, at byte) (out []string) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == at:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}
