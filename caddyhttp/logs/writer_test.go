package logs

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/internal/logtest"
)

// TestWriterKey checks that writers with different settings have different keys.
func TestWriterKey(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range []Writer{
		{Recipient: recipient.Recipient{Key: "a"}},
		{Recipient: recipient.Recipient{Key: "a", Tag: "x"}},
		{Recipient: recipient.Recipient{Key: "a"}, Title: "x"},
		{Recipient: recipient.Recipient{Key: "a"}, Type: "info"},
		{Recipient: recipient.Recipient{Key: "a"}, Interval: 1},
		{Recipient: recipient.Recipient{Key: "a"}, Max: 1},
	} {
		seen[w.WriterKey()] = true
	}
	if len(seen) != 6 {
		t.Errorf("the keys are %v", seen)
	}
	w := Writer{Recipient: recipient.Recipient{Key: "a"}, Title: "secretsecret"}
	if w.String() != "notify a" {
		t.Error(w.String())
	}
}

// TestWithoutApp checks that without a running app errors go to standard error
// at once, and collected entries when the log is closed.
func TestWithoutApp(t *testing.T) {
	s, err := newSink(Writer{Recipient: recipient.Recipient{Key: "ops"}, Interval: caddy.Duration(time.Minute), Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	s.stderr = &errs
	write := func(level zapcore.Level, logger, message string) string {
		errs.Reset()
		if _, err := s.Write(logtest.Encode(t, logtest.JSON(), level, logger, message)); err != nil {
			t.Fatal(err)
		}
		return errs.String()
	}
	if got := write(zap.WarnLevel, "tls", "will retry"); got != "" {
		t.Errorf("a warning is written at once: %s", got)
	}
	for _, logger := range []string{"tls", "notify"} {
		if got := write(zap.ErrorLevel, logger, "no route"); !strings.Contains(got, `"msg":"no route"`) || strings.Count(got, `"msg"`) != 1 {
			t.Errorf("an error of %s: %s", logger, got)
		}
	}
	errs.Reset()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := errs.String(); !strings.Contains(got, "log output notify ops: 2 entries not sent") || !strings.Contains(got, "will retry") {
		t.Errorf("when it is closed: %s", got)
	}
}
