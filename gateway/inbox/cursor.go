package inbox

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/timetext"
)

// Cursor is the position of a message in the inbox of its key: later messages have larger cursors.
// It is the time at which the message came in, in microseconds since 1970, or a larger number if
// another message has that one.
type Cursor uint64

// cursorAt returns the smallest cursor of a message that comes in at t.
func cursorAt(t time.Time) Cursor { return Cursor(max(t.UnixMicro(), 0)) }

// next returns the cursor of a message that comes in at t, after the message with c.
func (c Cursor) next(t time.Time) Cursor { return max(c+1, cursorAt(t)) }

// The text form of a cursor has 12 letters and digits, as an ID of ntfy has. Its first letter
// distinguishes it from a time or a duration.
const (
	cursorPrefix = "m"
	cursorDigits = 11
	cursorBase   = 36
)

// String returns the cursor as readers see it: the ID of the message.
func (c Cursor) String() string {
	digits := strconv.FormatUint(uint64(c), cursorBase)
	return cursorPrefix + strings.Repeat("0", max(cursorDigits-len(digits), 0)) + digits
}

// parseCursor parses the text form of a cursor. It reports whether text is one.
func parseCursor(text string) (Cursor, bool) {
	digits, ok := strings.CutPrefix(text, cursorPrefix)
	if !ok || len(digits) != cursorDigits || strings.ToLower(digits) != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, cursorBase, 64)
	return Cursor(n), err == nil
}

// Since says which of the stored messages a reader wants.
type Since struct {
	None   bool   // only what comes in from now on
	Latest bool   // the last one
	After  Cursor // the messages after it
}

// from returns the cursor after which the reader wants messages. last is the cursor of the last
// message.
func (s Since) from(last Cursor) Cursor {
	switch {
	case s.None:
		return last
	case s.Latest:
		return max(last, 1) - 1
	}
	return s.After
}

// errSince is returned for a text that [ParseSince] does not understand.
var errSince = errors.New("since must be the id of a message, a day such as 2026-07-01, " +
	"a time in RFC 3339 or in seconds since 1970, a duration such as 10m " +
	"or 7d, all, none or latest")

// ParseSince parses the parameter since: the ID of a message, a time in seconds since 1970 or in
// RFC 3339, a day in the server's zone, a duration back from now, all, none or latest.
func ParseSince(text string, now time.Time, duration func(string) (time.Duration, error)) (Since, error) {
	switch text {
	case "all":
		return Since{}, nil
	case "none":
		return Since{None: true}, nil
	case "latest":
		return Since{Latest: true}, nil
	}
	from := func(t time.Time) Since { return Since{After: max(cursorAt(t), 1) - 1} }
	if c, ok := parseCursor(text); ok {
		return Since{After: c}, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 && seconds < maxSeconds {
		return from(time.Unix(seconds, 0)), nil
	}
	if t, err := timetext.Parse(text); err == nil {
		return from(t), nil
	}
	if d, err := duration(text); err == nil && d >= 0 {
		return from(now.Add(-d)), nil
	}
	return Since{}, errSince
}

// maxSeconds is the largest time in seconds since 1970, in the year 5138.
const maxSeconds = 100_000_000_000
