package logdigest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// TestDigest checks the title, text and type of a message.
func TestDigest(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 0, 0, time.Local)
	entry := func(level zapcore.Level, logger, message string, second int) Entry {
		return Entry{at.Add(time.Duration(second) * time.Second), level, logger, message, []Field{{"n", strconv.Itoa(second)}}}
	}
	for _, tt := range []struct {
		entries     []Entry
		title, body string
		kind        notifier.Type
	}{
		{
			[]Entry{entry(zap.WarnLevel, "tls", "no route", 1)},
			"WARN: no route", "no route\nn: 1\nWARN tls, 2026-03-01 12:30:01", notifier.Warning,
		},
		{
			[]Entry{entry(zap.InfoLevel, "", "hello", 1), entry(zap.InfoLevel, "", "hello", 2)},
			"INFO, 2 times: hello", "2 entries, all alike:\n\n2 × hello\nthe first with n: 1\nINFO, 2026-03-01 12:30:01 to 12:30:02", notifier.Info,
		},
		{
			[]Entry{
				entry(zap.WarnLevel, "tls", "no route", 1), entry(zap.ErrorLevel, "http", "no room", 2), entry(zap.ErrorLevel, "tls", "no route", 2),
				entry(zap.ErrorLevel, "dns", "no name", 3), entry(zap.ErrorLevel, "pki", "no name", 3), entry(zap.ErrorLevel, "pki", "no name", 3),
			},
			"ERROR: 6 entries in Caddy's log",
			"6 entries of 4 kinds:\n\n2 × no route\nthe first with n: 1\nERROR tls, 2026-03-01 12:30:01 to 12:30:02\n\n" +
				"no room\nn: 2\nERROR http, 2026-03-01 12:30:02\n\nand 3 entries of other kinds (dns, pki)",
			notifier.Failure,
		},
	} {
		d := NewDigest(2)
		for _, e := range tt.entries {
			d.Add(e)
		}
		if d.Title() != tt.title || d.Body() != tt.body || d.Type() != tt.kind {
			t.Errorf("got %q, %s\n%s\nwant %q, %s\n%s", d.Title(), d.Type(), d.Body(), tt.title, tt.kind, tt.body)
		}
	}
}

// entriesOf returns the number of log entries that a message has.
func entriesOf(body string) (n int) {
	if _, err := fmt.Sscanf(body, "%d entr", &n); err != nil {
		return 1
	}
	return n
}

// TestDigestIsBounded checks that a digest and its message take bounded memory.
func TestDigestIsBounded(t *testing.T) {
	racetest.SkipIfSlow(t)
	const shown = 100
	d := NewDigest(shown)
	const n = 10_000
	long := strings.Repeat("x", 100_000)
	for i := range n {
		line := fmt.Sprintf(`{"level":"error","logger":"l%d%s","msg":"%d%s","a":"%s","b":{"c":"%s"}}`,
			i, long[:1000], i, long[:1000+i%1000], long[:1000], long[:1000])
		d.Add(ReadEntry([]byte(line), time.Now()))
	}
	held := 0
	for k, g := range d.kinds {
		held += len(k.logger) + len(k.message) + len(g.fields)
	}
	if len(d.kinds) != maxKinds || len(d.order) != maxKinds || held > 1<<20 {
		t.Errorf("%d kinds, %d in order, %d bytes", len(d.kinds), len(d.order), held)
	}
	body := d.Body()
	if entriesOf(body) != n || !strings.Contains(body, "of more than 256 kinds") ||
		!strings.Contains(body, fmt.Sprintf("and %d entries of other kinds", n-shown)) {
		t.Error(markup.TruncateBytes(body, 300), body[len(body)-300:])
	}
	if len(body) > shown*2000 || len(d.Title()) > 200 {
		t.Errorf("the message has %d bytes, the title %d", len(body), len(d.Title()))
	}
}
