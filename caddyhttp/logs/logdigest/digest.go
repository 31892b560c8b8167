package logdigest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Digest is the content of one message: log entries, counted by kind. Entries are
// of one kind if their logger and message are the same. Its memory is bounded.
type Digest struct {
	shown int // how many kinds are shown

	count int
	level zapcore.Level // the highest
	kinds map[kind]*group
	order []*group
	other int // entries of kinds beyond maxKinds
}

// kind identifies entries of one kind.
type kind struct{ logger, message string }

// group are the entries of one kind.
type group struct {
	kind
	level       zapcore.Level
	count       int
	first, last time.Time
	fields      string // of the first entry; "" if the group is not shown
}

// maxKinds bounds the kinds that a digest distinguishes.
const maxKinds = 256

// Limits of a message, in bytes.
const (
	maxFieldsAlone   = maxEntryFields // the fields of the only kind
	maxFieldsOfMany  = 400            // the fields of one of several kinds
	maxMessageOfMany = 400
	maxTitle         = 150
)

// NewDigest returns an empty digest that shows at most shown kinds of entries.
func NewDigest(shown int) *Digest {
	return &Digest{shown: shown, level: zapcore.DebugLevel, kinds: map[kind]*group{}}
}

// Count returns the number of entries.
func (d *Digest) Count() int { return d.count }

// Add counts an entry. Of each kind, the digest keeps the fields of the first.
func (d *Digest) Add(e Entry) {
	d.count++
	d.level = max(d.level, e.Level)
	k := kind{e.Logger, e.Message}
	g := d.kinds[k]
	if g == nil {
		if len(d.kinds) == maxKinds {
			d.other++
			return
		}
		g = &group{kind: k, level: e.Level, first: e.Time}
		if len(d.order) < d.shown {
			g.fields = e.joinFields(maxFieldsAlone)
		}
		d.kinds[k] = g
		d.order = append(d.order, g)
	}
	g.count++
	g.level = max(g.level, e.Level)
	g.last = e.Time
}

// Type returns the message type for the highest level.
func (d *Digest) Type() notifier.Type {
	switch {
	case d.level >= zapcore.ErrorLevel:
		return notifier.Failure
	case d.level == zapcore.WarnLevel:
		return notifier.Warning
	}
	return notifier.Info
}

// Title returns the level and text of the entries, or their number if they are of
// several kinds.
func (d *Digest) Title() string {
	level := d.level.CapitalString()
	if len(d.order) > 1 || d.other > 0 {
		return fmt.Sprintf("%s: %s in Caddy's log", level, CountEntries(d.count))
	}
	g := d.order[0]
	text := level + ": " + g.message
	if g.count > 1 {
		text = fmt.Sprintf("%s, %d times: %s", level, g.count, g.message)
	}
	return markup.TruncateBytes(text, maxTitle)
}

// Body returns the number of entries and the text of each kind.
func (d *Digest) Body() string {
	if d.count == 1 {
		return d.order[0].text(maxFieldsAlone)
	}
	var b strings.Builder
	b.WriteString(CountEntries(d.count))
	if len(d.order) == 1 && d.other == 0 {
		b.WriteString(", all alike:\n\n" + d.order[0].text(maxFieldsAlone))
		return b.String()
	}
	if d.other > 0 {
		fmt.Fprintf(&b, " of more than %d kinds:\n", maxKinds)
	} else {
		fmt.Fprintf(&b, " of %d kinds:\n", len(d.order))
	}
	rest := d.count
	for _, g := range d.order[:min(d.shown, len(d.order))] {
		b.WriteString("\n" + g.text(maxFieldsOfMany) + "\n")
		rest -= g.count
	}
	if rest > 0 {
		fmt.Fprintf(&b, "\nand %s of other kinds%s\n", CountEntries(rest), d.otherLoggers())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// otherLoggers returns the names of some loggers whose entries are not shown.
func (d *Digest) otherLoggers() string {
	var names []string
	for _, g := range d.order[min(d.shown, len(d.order)):] {
		if g.logger != "" && !slices.Contains(names, g.logger) && len(names) < 5 {
			names = append(names, markup.TruncateBytes(g.logger, maxTitle))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// text returns the message, times, and fields of the first entry, with at most
// maxFields bytes of fields.
func (g *group) text(maxFields int) string {
	message, when, fields := markup.TruncateBytes(g.message, max(maxFields, maxMessageOfMany)),
		g.first.Format(time.DateTime), markup.TruncateBytes(g.fields, maxFields)
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
	return markup.JoinLines(message, fields, source+", "+when)
}
