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

// TestTitlesSetting checks that a site keeps titles if it or the global option says so, and that a queue is required.
func TestTitlesSetting(t *testing.T) {
	t.Parallel()
	const key, on, off = "key k {\nurl json://h\n}\n", "titles on\n", "titles off\n"
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for _, tt := range []struct {
		block, global string
		want          bool
		err           string
	}{
		{block: key, global: queue},
		{block: key + on, global: queue, want: true},
		{block: key, global: queue + on, want: true},
		{block: key + off, global: queue + on},
		{block: key + off},
		{block: key + on, err: "Testfile:5: titles: the queue keeps them with the results of messages, and there is none; add queue"},
		{block: key, global: on, err: "Testfile:2: titles: the queue keeps them"},
		{block: key + "titles\n", err: "expected titles on|off"},
		{block: key + "titles yes\n", err: "it must be on or off"},
	} {
		h, err := provision(t, tt.block, tt.global)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %q: %v, want %q", tt.block, tt.global, err, tt.err)
			}
		case err != nil || h.api.Resolved.Titles != tt.want:
			t.Errorf("%q, %q: %v, want %t", tt.block, tt.global, err, tt.want)
		}
	}
}
