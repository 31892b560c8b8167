package source

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// valueOr implements the template function default.
func (x *run) valueOr(other, v any) (any, error) {
	read, empty := payload.IsEmpty(v)
	if err := x.charge(read); err != nil || !empty {
		return v, err
	}
	return other, nil
}

// compare compares a and b by value if one is a number and the other can be one, and
// otherwise as text.
func (x *run) compare(a, b any) (int, error) {
	if payload.IsNumber(a) || payload.IsNumber(b) {
		m, ok1 := payload.Float(a)
		n, ok2 := payload.Float(b)
		if ok1 && ok2 {
			return cmp.Compare(m, n), x.charge(0)
		}
	}
	s, ok1 := a.(string)
	t, ok2 := b.(string)
	if ok1 && ok2 {
		return strings.Compare(s, t), x.charge(min(len(s), len(t)))
	}
	both, err := x.texts(a, b)
	if err != nil {
		return 0, err
	}
	return strings.Compare(both[0], both[1]), nil
}

// equal reports whether a equals one of the others.
func (x *run) equal(a any, others ...any) (bool, error) {
	if err := x.charge(0); err != nil {
		return false, err
	}
	for _, b := range others {
		if n, err := x.compare(a, b); err != nil || n == 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func (x *run) json(v any) (string, error) {
	if err := x.charge(jsonWork * payload.Size(v)); err != nil {
		return "", err
	}
	return payload.Encode(v), nil
}

func (x *run) fromJSON(v any) (any, error) {
	s, err := x.text(v)
	if err != nil {
		return nil, err
	}
	if err := x.charge(jsonWork * len(s)); err != nil {
		return nil, err
	}
	out, err := payload.Decode([]byte(s))
	if err != nil {
		return nil, nil // invalid JSON is empty, like a missing field
	}
	return out, nil
}

// typeOf returns the type for a common word of alerting, or "" for an unknown word.
func (x *run) typeOf(v any) (string, error) {
	word, err := x.text(v)
	if err != nil {
		return "", err
	}
	if t, known := typeword.TypeOf(word); known && strings.TrimSpace(word) != "" {
		return string(t), nil
	}
	return "", nil
}

func (x *run) date(layout, v any) (string, error) {
	t, ok := toTime(v)
	if !ok {
		return x.text(v)
	}
	form, err := x.text(layout)
	if err != nil || t.Year() <= 1 {
		return "", err
	}
	return x.chargeResult(t.Format(form), nil)
}

// maxTime is the maximum length of a text that is read as a time, in bytes.
const maxTime = 400

// toTime parses a time in RFC 3339 or a similar form, or a number of seconds or
// milliseconds since 1970.
func toTime(v any) (time.Time, bool) {
	if payload.IsNumber(v) {
		f, _ := payload.Float(v)
		if math.Abs(f) > 1e11 { // the year 5138 in seconds
			f /= 1000
		}
		if math.Abs(f) > 1e11 {
			return time.Time{}, false
		}
		return time.Unix(int64(f), 0).UTC(), true
	}
	s, ok := v.(string)
	if !ok || len(s) > maxTime {
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700 MST"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// duration returns a number of seconds as text with its two largest units.
func (x *run) duration(v any) (string, error) {
	seconds, ok := payload.Float(v)
	if !ok || math.Abs(seconds) > 1e12 {
		return x.text(v)
	}
	return formatSeconds(seconds), x.charge(0)
}

func formatSeconds(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	if seconds < 60 {
		return sign + strconv.FormatFloat(math.Round(seconds*10)/10, 'f', -1, 64) + " s"
	}
	var out []string
	rest := int64(seconds)
	for _, u := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}} {
		n := rest / u.seconds
		rest %= u.seconds
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, u.name))
		} else if len(out) > 0 {
			break
		}
		if len(out) == 2 {
			break
		}
	}
	return sign + strings.Join(out, " ")
}

func (x *run) fileSize(v any) (string, error) {
	n, ok := payload.Float(v)
	if !ok || n < 0 || n >= math.MaxInt64 {
		return x.text(v)
	}
	return humanize.Bytes(uint64(n)), x.charge(0)
}
