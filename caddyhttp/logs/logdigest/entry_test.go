package logdigest

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/logtest"
)

func consoleEncoder(colours bool) zapcore.Encoder {
	c := zap.NewDevelopmentEncoderConfig()
	if colours {
		c.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zapcore.NewConsoleEncoder(c)
}

// TestReadEntry checks that entries of the encoders json and console are decoded,
// and that the text of other encoders becomes the message.
func TestReadEntry(t *testing.T) {
	fields := []zap.Field{
		zap.String("host", "h\nh"), zap.Error(errors.New("no \"route\"")), zap.Int("n", 3),
		zap.Any("request", map[string]any{
			"method": "GET", "host": "example.com", "uri": "/x?y", "client_ip": "192.0.2.1",
			"headers": map[string]any{"Cookie": []string{"secretsecret"}},
		}),
	}
	for name, encoder := range map[string]zapcore.Encoder{
		"json": logtest.JSON(), "console": consoleEncoder(false), "colours": consoleEncoder(true),
	} {
		e := ReadEntry(logtest.Encode(t, encoder, zap.WarnLevel, "tls.obtain", "will retry", fields...), time.Now())
		if e.Level != zap.WarnLevel || e.Logger != "tls.obtain" || e.Message != "will retry" {
			t.Errorf("%s: %+v", name, e)
		}
		if got, want := e.joinFields(1000), `host: h h, error: no "route", n: 3, request: GET example.com/x?y from 192.0.2.1`; got != want {
			t.Errorf("%s: fields %q, want %q", name, got, want)
		}
		e = ReadEntry(logtest.Encode(t, encoder, zap.ErrorLevel, "", "config is\tbad"), time.Now())
		if e.Level != zap.ErrorLevel || !strings.HasSuffix(e.Message, "bad") || e.joinFields(1000) != "" {
			t.Errorf("%s without logger: %+v", name, e)
		}
	}
	for text, message := range map[string]string{
		"":                           "",
		"\n":                         "",
		"just text\nand a stack":     "just text",
		`{"message":"x","n":1}`:      `{"message":"x","n":1}`,
		`{"level":"error","msg":1`:   `{"level":"error","msg":1`,
		"[]":                         "[]",
		"\xff\xfe":                   "\uFFFD",
		"ERROR":                      "ERROR",
		`{"msg":""}`:                 "",
		`{"msg":"a\nb","level":"x"}`: "a",
	} {
		if e := ReadEntry([]byte(text), time.Now()); e.Message != message || e.Level != zap.InfoLevel {
			t.Errorf("%q: %+v, want %q", text, e, message)
		}
	}
}

// FuzzReadEntry checks that the message about any entry has bounded size and is
// valid UTF-8.
func FuzzReadEntry(f *testing.F) {
	f.Add([]byte(`{"level":"error","ts":1.5,"logger":"a","msg":"m","request":{"method":"GET","uri":"/"}}`))
	f.Add([]byte("2026/01/02 12:00:00.000\tERROR\ta\tm\t{\"a\":1}\n"))
	f.Add([]byte("\x1b[31mERROR\x1b[0m\tx"))
	f.Add([]byte("{\"msg\":\"a\xff\",\"\xfe\":\"\xfd\"}"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e := ReadEntry(line, time.Now())
		d := NewDigest(1)
		d.Add(e)
		d.Add(e)
		if n := len(d.Title()) + len(d.Body()); n > 16<<10 {
			t.Errorf("the message has %d bytes", n)
		}
		if !utf8.ValidString(d.Title()) || !utf8.ValidString(d.Body()) {
			t.Errorf("the message is not UTF-8: %q %q", d.Title(), d.Body())
		}
	})
}
