// Package logdigest turns log entries into messages: it reads what zap's encoders
// write, counts the entries by kind, and collects those that come in a storm.
package logdigest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Entry is a decoded log entry.
type Entry struct {
	Time    time.Time
	Level   zapcore.Level
	Logger  string  // "" if the encoder leaves it out
	Message string  // one line
	Fields  []Field // in the order of the entry
}

// Field is a field of an entry. Value is text for people.
type Field struct{ Name, Value string }

// Limits of an entry, in bytes.
const (
	maxEntryMessage = 1 << 10
	maxEntryFields  = 3 << 10
	maxEntryField   = 500
)

// ansi matches the colours of the encoder console.
var ansi = lazyregexp.New("\x1b\\[[0-9;]*m")

// ReadEntry decodes an entry of the encoders json and console. The text of
// another encoder becomes the message. now becomes the time of the entry, because
// encoders write times in many formats.
func ReadEntry(line []byte, now time.Time) Entry {
	e := Entry{Time: now, Level: zapcore.InfoLevel}
	line = bytes.ToValidUTF8(bytes.TrimSpace(line), []byte("\uFFFD"))
	if o := e; o.readJSON(line) {
		e = o
	} else {
		e.readConsole(string(line))
	}
	e.Logger, e.Message = markup.TruncateBytes(e.Logger, maxEntryField), markup.TruncateBytes(markup.FirstLine(e.Message), maxEntryMessage)
	return e
}

// readJSON reads the object of the encoder json, with its default names, and
// reports whether line is one.
func (e *Entry) readJSON(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	message := string(line) // without a field msg
	err := eachMember(line, func(name string, value json.RawMessage) {
		text := formatJSON(value)
		switch name {
		case "ts":
		case "level":
			e.Level = parseLevel(text, e.Level)
		case "logger":
			e.Logger = text
		case "msg":
			message = text
		default:
			e.Fields = append(e.Fields, Field{name, text})
		}
	})
	e.Message = message
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
func (e *Entry) readConsole(line string) {
	line, _, _ = strings.Cut(ansi.ReplaceAllString(line, ""), "\n") // the next lines are a stack trace
	columns := strings.Split(line, "\t")
	last := len(columns) - 1
	if last > 0 {
		err := eachMember([]byte(columns[last]), func(name string, value json.RawMessage) {
			e.Fields = append(e.Fields, Field{name, formatJSON(value)})
		})
		if err == nil {
			columns = columns[:last]
		}
	}
	level := slices.IndexFunc(columns, func(c string) bool { return parseLevel(c, zapcore.InvalidLevel) != zapcore.InvalidLevel })
	if level < 0 || level == len(columns)-1 {
		e.Message = strings.Join(columns, " ")
		return
	}
	e.Level = parseLevel(columns[level], e.Level)
	columns = columns[level+1:]
	if len(columns) > 1 {
		e.Logger = columns[0]
	}
	e.Message = columns[len(columns)-1]
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
func (e *Entry) joinFields(max int) string {
	var b strings.Builder
	for _, f := range e.Fields {
		if f.Value == "" || f.Name == "resp_headers" {
			continue
		}
		value := markup.TruncateBytes(strings.Join(strings.Fields(f.Value), " "), maxEntryField)
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.Name + ": " + value)
		if b.Len() > max {
			break
		}
	}
	return markup.TruncateBytes(b.String(), max)
}

// CountEntries returns "1 entry" or "2 entries".
func CountEntries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}
