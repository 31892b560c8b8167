package caddyhttp

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// encoded is an entry as an encoder of zap writes it.
func encoded(t *testing.T, e zapcore.Encoder, level zapcore.Level, logger, message string, fields ...zap.Field) []byte {
	t.Helper()
	b, err := e.EncodeEntry(zapcore.Entry{Level: level, Time: time.Now(), LoggerName: logger, Message: message}, fields)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jsonEncoder() zapcore.Encoder { return zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()) }

func consoleEncoder(colours bool) zapcore.Encoder {
	c := zap.NewDevelopmentEncoderConfig()
	if colours {
		c.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zapcore.NewConsoleEncoder(c)
}

// Entries of the usual encoders are taken apart; of others the text is taken.
func TestReadEntry(t *testing.T) {
	fields := []zap.Field{zap.String("host", "h\nh"), zap.Error(errors.New("no \"route\"")), zap.Int("n", 3), zap.Any("request", map[string]any{"method": "GET", "host": "example.com", "uri": "/x?y", "client_ip": "192.0.2.1", "headers": map[string]any{"Cookie": []string{"secretsecret"}}})}
	for name, encoder := range map[string]zapcore.Encoder{"json": jsonEncoder(), "console": consoleEncoder(false), "colours": consoleEncoder(true)} {
		e := readEntry(encoded(t, encoder, zap.WarnLevel, "tls.obtain", "will retry", fields...), time.Now())
		if e.level != zap.WarnLevel || e.logger != "tls.obtain" || e.message != "will retry" {
			t.Errorf("%s: %+v", name, e)
		}
		if got, want := e.joinFields(1000), `host: h h, error: no "route", n: 3, request: GET example.com/x?y from 192.0.2.1`; got != want {
			t.Errorf("%s: fields %q, want %q", name, got, want)
		}
		e = readEntry(encoded(t, encoder, zap.ErrorLevel, "", "config is\tbad"), time.Now())
		if e.level != zap.ErrorLevel || !strings.HasSuffix(e.message, "bad") || e.joinFields(1000) != "" {
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
		if e := readEntry([]byte(text), time.Now()); e.message != message || e.level != zap.InfoLevel {
			t.Errorf("%q: %+v, want %q", text, e, message)
		}
	}
}

func FuzzReadEntry(f *testing.F) {
	f.Add([]byte(`{"level":"error","ts":1.5,"logger":"a","msg":"m","request":{"method":"GET","uri":"/"}}`))
	f.Add([]byte("2026/01/02 12:00:00.000\tERROR\ta\tm\t{\"a\":1}\n"))
	f.Add([]byte("\x1b[31mERROR\x1b[0m\tx"))
	f.Add([]byte("{\"msg\":\"a\xff\",\"\xfe\":\"\xfd\"}"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e := readEntry(line, time.Now())
		e.isOwn(line)
		d := newLogDigest(1)
		d.add(e)
		d.add(e)
		if n := len(d.title()) + len(d.body()); n > 16<<10 {
			t.Errorf("the message has %d bytes", n)
		}
		if !utf8.ValidString(d.title()) || !utf8.ValidString(d.body()) {
			t.Errorf("the message is no UTF-8: %q %q", d.title(), d.body())
		}
	})
}

// An entry of the gateway's own is known as such, however it is encoded. It
// would be the cause of the next.
func TestOwnEntries(t *testing.T) {
	renamed := zap.NewProductionEncoderConfig()
	renamed.NameKey = "who"
	for name, encoder := range map[string]zapcore.Encoder{"json": jsonEncoder(), "console": consoleEncoder(false), "colours": consoleEncoder(true), "renamed": zapcore.NewJSONEncoder(renamed)} {
		for logger, own := range map[string]bool{
			"notify": true, "notify.x": true, "http.handlers.notify": true, "events.handlers.notify": true,
			"caddy.logging.writers.notify": true, "admin.api.notify": true,
			"notifyd": false, "http.handlers.notify_me": false, "http.log.error": false, "events": false, "tls": false,
		} {
			line := encoded(t, encoder, zap.ErrorLevel, logger, "delivery failed", zap.String("name", "unhealthy"))
			if e := readEntry(line, time.Now()); e.isOwn(line) != own {
				t.Errorf("%s: an entry of %s counts as own: %v", name, logger, !own)
			}
		}
	}
	line := encoded(t, jsonEncoder(), zap.DebugLevel, "events", "event", zap.String("name", "notify_failed"))
	if e := readEntry(line, time.Now()); !e.isOwn(line) {
		t.Error("Caddy's entry about an event of the gateway does not count as own")
	}
}
