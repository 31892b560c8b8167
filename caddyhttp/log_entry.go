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

// logEntry is an entry of Caddy's log, read back from what an encoder has made
// of it.
type logEntry struct {
	time    time.Time
	level   zapcore.Level
	logger  string // "" where the encoder leaves it out
	message string
	fields  []logField // in the entry's order
}

type logField struct{ name, value string }

// The bounds of an entry, in bytes: 4 KiB in all.
const (
	maxEntryMessage = 1 << 10
	maxEntryFields  = 3 << 10
	maxEntryField   = 500
)

// ansi are the marks of a console encoder's colours.
var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// readEntry understands the encoders json and console, and takes what others
// write for a message.
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

// readJSON reads the object that the encoder json writes, with its usual names.
func (e *logEntry) readJSON(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	var message *string
	err := eachMember(line, func(name string, value json.RawMessage) {
		text := readableJSON(value)
		switch name {
		case "ts":
		case "level":
			e.level = readLevel(text, e.level)
		case "logger":
			e.logger = text
		case "msg":
			message = &text
		default:
			e.fields = append(e.fields, logField{name, text})
		}
	})
	if err != nil {
		return false
	}
	if message == nil {
		s := string(line)
		message = &s
	}
	e.message = *message
	return true
}

// eachMember calls f for each member of the JSON object at the beginning of
// text, in order. json.Unmarshal into a map would lose the order.
func eachMember(text []byte, f func(name string, value json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errNoObject
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

var errNoObject = errors.New("it is not an object")

// readableJSON is a value without the marks of JSON, as far as it goes.
func readableJSON(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var r struct {
		Method string `json:"method"`
		Host   string `json:"host"`
		URI    string `json:"uri"`
		Client string `json:"client_ip"`
	}
	if len(value) > 0 && value[0] == '{' && json.Unmarshal(value, &r) == nil && r.Method != "" && r.URI != "" {
		s := r.Method + " " + r.Host + r.URI // a request
		if r.Client != "" {
			s += " from " + r.Client
		}
		return s
	}
	return string(value)
}

// readConsole reads a line of the encoder console: columns for time, level,
// logger and message, separated by tabs, and an object with the fields.
func (e *logEntry) readConsole(line string) {
	line, _, _ = strings.Cut(ansi.ReplaceAllString(line, ""), "\n") // a stack follows
	columns := strings.Split(line, "\t")
	last := len(columns) - 1
	if last > 0 {
		if err := eachMember([]byte(columns[last]), func(name string, value json.RawMessage) {
			e.fields = append(e.fields, logField{name, readableJSON(value)})
		}); err == nil {
			columns = columns[:last]
		}
	}
	at := slices.IndexFunc(columns, func(c string) bool { return readLevel(c, zapcore.InvalidLevel) != zapcore.InvalidLevel })
	if at < 0 || at == len(columns)-1 {
		e.message = strings.Join(columns, " ")
		return
	}
	e.level = readLevel(columns[at], e.level)
	columns = columns[at+1:]
	if len(columns) > 1 {
		e.logger = columns[0]
	}
	e.message = columns[len(columns)-1]
}

func readLevel(text string, otherwise zapcore.Level) zapcore.Level {
	var l zapcore.Level
	if text == "" || l.UnmarshalText([]byte(strings.ToLower(strings.TrimSpace(text)))) != nil {
		return otherwise
	}
	return l
}

// shortFields are the fields on one line, of at most so many bytes.
func (e *logEntry) shortFields(most int) string {
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
		if b.Len() > most {
			break
		}
	}
	return markup.TruncateBytes(b.String(), most)
}

// ownLoggers are the names under which the gateway logs, itself or with
// something behind a dot. Its entries make no messages: each failure would
// cause the next.
var ownLoggers = []string{"notify", "http.handlers.notify", "events.handlers.notify", "caddy.logging.writers.notify", "admin.api.notify"}

var ownLoggerText = regexp.MustCompile(`["\t](?:(?:http|events)\.handlers\.|caddy\.logging\.writers\.|admin\.api\.)?notify["\t.]`)

// isOwn says whether the gateway itself has written the entry, or Caddy's
// events app about an event of the gateway's.
func (e *logEntry) isOwn(line []byte) bool {
	switch e.logger {
	case "":
		// The encoder may have the name elsewhere.
		return ownLoggerText.Match(line)
	case "events":
		return slices.ContainsFunc(e.fields, func(f logField) bool { return f.name == "name" && isOwnEvent(f.value) })
	}
	return slices.ContainsFunc(ownLoggers, func(name string) bool {
		return e.logger == name || strings.HasPrefix(e.logger, name+".")
	})
}

// entries is how many there are, in words.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}
