package logs

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/logs/logdigest"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// ownLoggers are the loggers of the gateway. Their entries, and the entries of loggers below
// them, are not sent: each failed delivery would cause the next.
var ownLoggers = []string{"notify", "http.handlers.notify", "events.handlers.notify", "caddy.logging.writers.notify", "admin.api.notify"}

// ownLoggerText matches the name of such a logger in an entry.
var ownLoggerText = lazyregexp.New(`["\t](?:(?:http|events)\.handlers\.|caddy\.logging\.writers\.|admin\.api\.)?notify["\t.]`)

// isOwnEntry reports whether an entry was written by the gateway, or by Caddy about
// an event of the gateway. line is the encoded entry.
func isOwnEntry(e *logdigest.Entry, line []byte) bool {
	switch e.Logger {
	case "":
		// The encoder may write the name elsewhere.
		return ownLoggerText.Match(line)
	case "events":
		return slices.ContainsFunc(e.Fields, func(f logdigest.Field) bool { return f.Name == "name" && event.CausesNone(f.Value) })
	}
	return slices.ContainsFunc(ownLoggers, func(name string) bool {
		return e.Logger == name || strings.HasPrefix(e.Logger, name+".")
	})
}
