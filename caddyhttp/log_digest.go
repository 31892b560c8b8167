package caddyhttp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// logDigest is the content of one message: log entries, counted by kind. Its
// memory is bounded.
type logDigest struct {
	shown int // how many kinds are shown

	count int
	level zapcore.Level // the highest
	kinds map[logKind]*logGroup
	order []*logGroup
	other int // entries of kinds beyond maxDigestKinds
}

// logKind is what entries of one kind have in common.
type logKind struct{ logger, message string }

// logGroup are the entries of one kind.
type logGroup struct {
	logKind
	level       zapcore.Level
	count       int
	first, last time.Time
	fields      string // of the first entry; "" if the group is not shown
}

// maxDigestKinds bounds the kinds that a digest distinguishes.
const maxDigestKinds = 256

// Limits of a message, in bytes.
const (
	maxFieldsAlone   = maxEntryFields // the fields of the only kind
	maxFieldsOfMany  = 400            // the fields of one of several kinds
	maxMessageOfMany = 400
	maxLogTitle      = 150
)

func newLogDigest(shown int) *logDigest {
	return &logDigest{shown: shown, level: zapcore.DebugLevel, kinds: map[logKind]*logGroup{}}
}

func (d *logDigest) add(e logEntry) {
	d.count++
	d.level = max(d.level, e.level)
	k := logKind{e.logger, e.message}
	g := d.kinds[k]
	if g == nil {
		if len(d.kinds) == maxDigestKinds {
			d.other++
			return
		}
		g = &logGroup{logKind: k, level: e.level, first: e.time}
		if len(d.order) < d.shown {
			g.fields = e.joinFields(maxFieldsAlone)
		}
		d.kinds[k] = g
		d.order = append(d.order, g)
	}
	g.count++
	g.level = max(g.level, e.level)
	g.last = e.time
}

// messageType returns the type for the highest level.
func (d *logDigest) messageType() notifier.Type {
	switch {
	case d.level >= zapcore.ErrorLevel:
		return notifier.Failure
	case d.level == zapcore.WarnLevel:
		return notifier.Warning
	}
	return notifier.Info
}

func (d *logDigest) title() string {
	level := d.level.CapitalString()
	if len(d.order) > 1 || d.other > 0 {
		return fmt.Sprintf("%s: %s in Caddy's log", level, countEntries(d.count))
	}
	g := d.order[0]
	text := level + ": " + g.message
	if g.count > 1 {
		text = fmt.Sprintf("%s, %d times: %s", level, g.count, g.message)
	}
	return markup.TruncateBytes(text, maxLogTitle)
}

// body returns the number of entries and the text of each kind.
func (d *logDigest) body() string {
	if d.count == 1 {
		return d.order[0].text(maxFieldsAlone)
	}
	var b strings.Builder
	b.WriteString(countEntries(d.count))
	if len(d.order) == 1 && d.other == 0 {
		b.WriteString(", all alike:\n\n" + d.order[0].text(maxFieldsAlone))
		return b.String()
	}
	if d.other > 0 {
		fmt.Fprintf(&b, " of more than %d kinds:\n", maxDigestKinds)
	} else {
		fmt.Fprintf(&b, " of %d kinds:\n", len(d.order))
	}
	rest := d.count
	for _, g := range d.order[:min(d.shown, len(d.order))] {
		b.WriteString("\n" + g.text(maxFieldsOfMany) + "\n")
		rest -= g.count
	}
	if rest > 0 {
		fmt.Fprintf(&b, "\nand %s of other kinds%s\n", countEntries(rest), d.otherLoggers())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// otherLoggers returns the names of some loggers whose entries are not shown.
func (d *logDigest) otherLoggers() string {
	var names []string
	for _, g := range d.order[min(d.shown, len(d.order)):] {
		if g.logger != "" && !slices.Contains(names, g.logger) && len(names) < 5 {
			names = append(names, markup.TruncateBytes(g.logger, maxLogTitle))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// text returns the message, times, and fields of the first entry, with at most
// maxFields bytes of fields.
func (g *logGroup) text(maxFields int) string {
	message, when, fields := markup.TruncateBytes(g.message, max(maxFields, maxMessageOfMany)), g.first.Format(time.DateTime), markup.TruncateBytes(g.fields, maxFields)
	if g.count > 1 {
		message = fmt.Sprintf("%d × %s", g.count, message)
		if last := g.last.Format(time.TimeOnly); last != g.first.Format(time.TimeOnly) {
			when += " to " + last
		}
		if fields != "" {
			fields = "the first with " + fields
		}
	}
	source := g.level.CapitalString()
	if g.logger != "" {
		source += " " + g.logger
	}
	return joinLines(message, fields, source+", "+when)
}
