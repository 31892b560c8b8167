// Package logtest encodes log entries for tests.
package logtest

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Encode returns an entry as an encoder of zap writes it.
func Encode(t *testing.T, e zapcore.Encoder, level zapcore.Level, logger, message string, fields ...zap.Field) []byte {
	t.Helper()
	b, err := e.EncodeEntry(zapcore.Entry{Level: level, Time: time.Now(), LoggerName: logger, Message: message}, fields)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// JSON returns zap's encoder for production.
func JSON() zapcore.Encoder { return zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()) }
