package logs

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/logs/logdigest"
	"github.com/caddy-notify/caddy-notify/internal/logtest"
)

// TestOwnEntries checks that the gateway recognizes its own entries in every
// encoding. Sending them would cause more of them without end.
func TestOwnEntries(t *testing.T) {
	renamed := zap.NewProductionEncoderConfig()
	renamed.NameKey = "who"
	colours := zap.NewDevelopmentEncoderConfig()
	colours.EncodeLevel = zapcore.CapitalColorLevelEncoder
	for name, encoder := range map[string]zapcore.Encoder{
		"json": logtest.JSON(), "renamed": zapcore.NewJSONEncoder(renamed),
		"console": zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), "colours": zapcore.NewConsoleEncoder(colours),
	} {
		for logger, own := range map[string]bool{
			"notify": true, "notify.x": true, "http.handlers.notify": true, "events.handlers.notify": true,
			"caddy.logging.writers.notify": true, "admin.api.notify": true,
			"notifyd": false, "http.handlers.notify_me": false, "http.log.error": false, "events": false, "tls": false,
		} {
			line := logtest.Encode(t, encoder, zap.ErrorLevel, logger, "delivery failed", zap.String("name", "unhealthy"))
			if e := logdigest.ReadEntry(line, time.Now()); isOwnEntry(&e, line) != own {
				t.Errorf("%s: an entry of %s counts as own: %v", name, logger, !own)
			}
		}
	}
	line := logtest.Encode(t, logtest.JSON(), zap.DebugLevel, "events", "event", zap.String("name", "notify_failed"))
	if e := logdigest.ReadEntry(line, time.Now()); !isOwnEntry(&e, line) {
		t.Error("Caddy's entry about an event of the gateway does not count as own")
	}
}
