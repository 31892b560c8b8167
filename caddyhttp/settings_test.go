package caddyhttp

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestModulesInLogs checks that Caddy's debug log, which prints whole modules,
// shows only how many keys and URLs they have.
func TestModulesInLogs(t *testing.T) {
	h := newGateway(t, "key k {\nurl json://u:secretsecret@h a\n}\ndefault_urls json://u:secretsecret@h",
		"key g {\nurl json://u:secretsecret@h\n}")
	var out bytes.Buffer
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(&out), zap.DebugLevel))
	log.Debug("", zap.Any("handler", h), zap.Any("app", &App{Settings: h.Settings}),
		zap.Any("settings", &h.Settings), zap.Any("key", h.Keys["k"]), zap.Any("url", h.Keys["k"].URLs[0]))
	if strings.Contains(out.String(), "secret") || !strings.Contains(out.String(), `"handler":{"keys":1,"default_urls":1}`) {
		t.Error(out.String())
	}
}
