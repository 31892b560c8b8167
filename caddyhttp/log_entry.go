package caddyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// logEntry is an entry of Caddy's log, decoded.
type logEntry struct {
	time    time.Time
	level   zapcore.Level
	logger  string // "" if the encoder leaves it out
	message string
	fields  []logField // in the order of the entry
}

type logField struct{ name, value string }

// Limits of an entry, in bytes.
const (
	maxEntryMessage = 1 << 10
	maxEntryFields  = 3 << 10
	maxEntryField   = 500
)

// ansi matches the colours of the encoder console.
var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// readEntry decodes an entry of the encoders json and console. An entry of
// another encoder becomes the message.
func readEntry(line []byte, now time.Time) logEntry {
	e := logEntry{time: now, level: zapcore.InfoLevel}
	line = bytes.ToValidUTF8(bytes.TrimSpace(line), []byte("\uFFFD"))
	if o := e; o.readJSON(line) {
		e = o
	} else {
		e.readConsole(string(line))
	}
	e.logger, e.message = markup.TruncateBytes(e.logger, maxEntryField), markup.TruncateBytes(firstLine(e.message), maxEntryMessage)
	return e
}

// readJSON reads the object of the encoder json, with its default names, and
// reports whether line is one.
func (e *logEntry) readJSON(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	message := string(line) // without a field msg
	err := eachMember(line, func(name string, value json.RawMessage) {
		text := formatJSON(value)
		switch name {
		case "ts":
		case "level":
			e.level = parseLevel(text, e.level)
		case "logger":
			e.logger = text
		case "msg":
			message = text
		default:
			e.fields = append(e.fields, logField{name, text})
		}
	})
	e.message = message
	return err == nil
}

// eachMember calls f for each member of the JSON object at the beginning of
// text, in order. Decoding into a map would lose the order.
func eachMember(text []byte, f func(name string, value json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		f(name.(string), value)
	}
	_, err := d.Token() // the closing brace
	return err
}

// formatJSON returns a JSON value as text for people: a string without quotes,
// and a request of the access log as one line.
func formatJSON(value json.RawMessage) string {
	if value[0] == '"' {
		var text string
		_ = json.Unmarshal(value, &text) // eachMember has checked the syntax
		return text
	}
	var r struct {
		Method string `json:"method"`
		Host   string `json:"host"`
		URI    string `json:"uri"`
		Client string `json:"client_ip"`
	}
	if value[0] == '{' && json.Unmarshal(value, &r) == nil && r.Method != "" && r.URI != "" {
		s := r.Method + " " + r.Host + r.URI
		if r.Client != "" {
			s += " from " + r.Client
		}
		return s
	}
	return string(value)
}

// readConsole reads a line of the encoder console: time, level, logger and
// message, separated by tabs, and an object with the fields.
func (e *logEntry) readConsole(line string) {
	line, _, _ = strings.Cut(ansi.ReplaceAllString(line, ""), "\n") // the next lines are a stack trace
	columns := strings.Split(line, "\t")
	last := len(columns) - 1
	if last > 0 {
		err := eachMember([]byte(columns[last]), func(name string, value json.RawMessage) {
			e.fields = append(e.fields, logField{name, formatJSON(value)})
		})
		if err == nil {
			columns = columns[:last]
		}
	}
	level := slices.IndexFunc(columns, func(c string) bool { return parseLevel(c, zapcore.InvalidLevel) != zapcore.InvalidLevel })
	if level < 0 || level == len(columns)-1 {
		e.message = strings.Join(columns, " ")
		return
	}
	e.level = parseLevel(columns[level], e.level)
	columns = columns[level+1:]
	if len(columns) > 1 {
		e.logger = columns[0]
	}
	e.message = columns[len(columns)-1]
}

// parseLevel returns the level that text names, or fallback.
func parseLevel(text string, fallback zapcore.Level) zapcore.Level {
	var l zapcore.Level
	if text == "" || l.UnmarshalText([]byte(strings.ToLower(strings.TrimSpace(text)))) != nil {
		return fallback
	}
	return l
}

// joinFields returns the fields on one line of at most max bytes.
func (e *logEntry) joinFields(max int) string {
	var b strings.Builder
	for _, f := range e.fields {
		if f.value == "" || f.name == "resp_headers" {
			continue
		}
		value := markup.TruncateBytes(strings.Join(strings.Fields(f.value), " "), maxEntryField)
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.name + ": " + value)
		if b.Len() > max {
			break
		}
	}
	return markup.TruncateBytes(b.String(), max)
}

// ownLoggers are the loggers of the gateway. Their entries, and those of loggers
// below them, are not sent: each failed delivery would cause the next.
var ownLoggers = []string{"notify", "http.handlers.notify", "events.handlers.notify", "caddy.logging.writers.notify", "admin.api.notify"}

// ownLoggerText matches the name of such a logger in an entry.
var ownLoggerText = regexp.MustCompile(`["\t](?:(?:http|events)\.handlers\.|caddy\.logging\.writers\.|admin\.api\.)?notify["\t.]`)

// isOwn reports whether the entry is one of the gateway, or one of Caddy about
// an event of the gateway.
func (e *logEntry) isOwn(line []byte) bool {
	switch e.logger {
	case "":
		// The encoder may write the name elsewhere.
		return ownLoggerText.Match(line)
	case "events":
		return slices.ContainsFunc(e.fields, func(f logField) bool { return f.name == "name" && isOwnEvent(f.value) })
	}
	return slices.ContainsFunc(ownLoggers, func(name string) bool {
		return e.logger == name || strings.HasPrefix(e.logger, name+".")
	})
}

// countEntries returns "1 entry" or "2 entries".
func countEntries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}
