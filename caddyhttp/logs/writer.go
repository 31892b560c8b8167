// Package logs sends log entries of Caddy as messages. Package logdigest collects entries
// and counts them by kind.
package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/files"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	caddy.RegisterModule(new(Writer))
}

// Writer sends log entries as messages. The first entry is sent after one
// second, together with others from that second. Later ones are collected and
// sent as one message when the interval is over. A message has the number of
// entries and shows each kind of them once: a storm of errors is one message a
// minute. Entries are of one kind if their logger and message are the same.
//
// The log should have a `level`. It understands the encoders `json` (the
// default) and `console`; entries of other encoders are shown as they are.
//
// The gateway's own entries, such as those about failed deliveries, are not
// sent, and a delivery of log entries writes no entries itself. Standard error
// has a count of the former and of entries that were not delivered. Errors that
// occur while no configuration runs, such as when Caddy cannot start, are
// written to standard error.
type Writer struct {
	recipient.Recipient

	// The title of the messages. Global placeholders such as `{system.hostname}`
	// are replaced when the configuration loads. Default: the level and text of
	// the entry, or the number of entries.
	Title string `json:"title,omitempty"`

	// The type of the messages: `info`, `success`, `warning` or `failure`.
	// Default: depends on the highest level: `failure` for ERROR and above,
	// `warning` for WARN, otherwise `info`.
	Type string `json:"type,omitempty"`

	// The shortest time between two messages, at least one second. A duration
	// such as `"10s"`, or a number of nanoseconds. Default: 1m.
	Interval caddy.Duration `json:"interval,omitempty"`

	// How many kinds of entries a message shows, from 1 to 100. It counts the
	// others. Default: 10.
	Max int `json:"max,omitempty"`

	shared process.Use
}

const (
	defaultInterval = time.Minute
	minInterval     = time.Second
	defaultKinds    = 10
	maxKinds        = 100
)

var (
	errInterval = errors.New("it must be a duration of one second or more, such as 1m")
	errKinds    = fmt.Errorf("it must be a whole number from 1 to %d", maxKinds)
)

// titlePlaceholders are the placeholders of the title of a message about log
// entries: only global ones.
var titlePlaceholders = placeholder.Scope{
	Text: "a message about log entries", Has: func(string) bool { return false },
	Allowed: "{system.hostname} or {env.NAME}",
}

// errNoApp is returned when the configuration has no keys for logs.
var errNoApp = errors.New("the global option notify is missing; " +
	"events and logs use its keys, so write notify { key … } into the global options")

// CaddyModule returns the Caddy module information.
func (*Writer) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "caddy.logging.writers.notify",
		New: func() caddy.Module { return new(Writer) },
	}
}

// Provision implements caddy.Provisioner. Caddy provisions logs before apps, so
// the notify app checks the key.
func (w *Writer) Provision(ctx caddy.Context) error {
	w.Locate(w)
	var named files.Set
	named.AddPlaceholders(w.Title)
	if err := w.provision(ctx); err != nil {
		// The context has no logger before all logs are provisioned.
		return block.LogRejected(caddy.Log().Named("caddy.logging.writers.notify"), w.Caddyfile.Describe("log output notify: ", err))
	}
	if err := w.shared.Load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	w.shared.Process.Logs.Expect(ctx, process.Expected{Recipient: w.Recipient, Files: named})
	return nil
}

func (w *Writer) provision(ctx caddy.Context) error {
	if err := w.Recipient.Check(); err != nil {
		return err
	}
	if w.Type != "" {
		t, err := notifier.ParseType(w.Type)
		if err != nil {
			return err
		}
		w.Type = string(t)
	}
	switch {
	case w.Interval == 0:
		w.Interval = caddy.Duration(defaultInterval)
	case w.Interval < caddy.Duration(minInterval):
		return errs.Prefix("interval", errInterval)
	}
	switch {
	case w.Max == 0:
		w.Max = defaultKinds
	case w.Max < 0 || w.Max > maxKinds:
		return errs.Prefix("max", errKinds)
	}
	if err := placeholder.CheckTextAndValues(w.Title, titlePlaceholders); err != nil {
		return w.Caddyfile.Locate("title", errs.Prefix("title", err))
	}
	w.Title = markup.OneLine(caddy.NewReplacer().ReplaceKnown(w.Title, ""))
	if !hasApp(ctx, "notify") {
		return errNoApp
	}
	return nil
}

// hasApp reports whether the configuration has an app. It reads unexported
// fields of Caddy's context, because there is no public way: ctx.AppIfConfigured
// loads an app that exists, and panics while logs are provisioned, since Caddy
// makes its map of apps later. If the fields have changed, hasApp returns true;
// a missing app then shows on standard error with the first entry.
func hasApp(ctx caddy.Context, app string) bool {
	config := reflect.ValueOf(ctx).FieldByName("cfg")
	if config.Kind() != reflect.Pointer || config.IsNil() {
		return true
	}
	apps := config.Elem().FieldByName("AppsRaw")
	return apps.Kind() != reflect.Map || apps.MapIndex(reflect.ValueOf(app)).IsValid()
}

// Cleanup implements caddy.CleanerUpper.
func (w *Writer) Cleanup() error { return w.shared.Release() }

// String implements caddy.WriterOpener.
func (w *Writer) String() string { return "notify " + w.Key }

// WriterKey implements caddy.WriterOpener. Caddy keeps an open writer over a
// reload if the key is the same.
func (w *Writer) WriterKey() string {
	c := Writer{Recipient: w.Recipient, Title: w.Title, Type: w.Type, Interval: w.Interval, Max: w.Max}
	settings, _ := json.Marshal(c) // texts and numbers always marshal
	return "notify:" + string(settings)
}

// OpenWriter implements caddy.WriterOpener.
func (w *Writer) OpenWriter() (io.WriteCloser, error) {
	return newSink(Writer{Recipient: w.Recipient, Title: w.Title, Type: w.Type, Interval: w.Interval, Max: w.Max})
}

// UnmarshalCaddyfile sets up the log writer from Caddyfile tokens. Syntax:
//
//	notify <key> [{
//		tag <expression>
//		title <text>
//		type info|success|warning|failure
//		interval <duration>
//		max <n>
//	}]
func (w *Writer) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := w.Unmarshal(d); err != nil {
		return err
	}
	err := block.ReadOptional(d, "notify", block.Options{
		"tag":   w.TagOption(),
		"title": w.TextOption("title", &w.Title, titlePlaceholders),
		"type":  recipient.TypeOption(&w.Type),
		"interval": {Usage: "interval <duration>", Min: 1, Max: 1, Line: func(args []string) error {
			t, err := caddy.ParseDuration(args[0])
			if err != nil || t < minInterval {
				return errInterval
			}
			w.Interval = caddy.Duration(t)
			return nil
		}},
		"max": {Usage: "max <n>", Min: 1, Max: 1, Line: block.Number(&w.Max, 1, maxKinds)},
	})
	w.Remember(w)
	return err
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Writer)(nil)
	_ caddy.CleanerUpper    = (*Writer)(nil)
	_ caddy.WriterOpener    = (*Writer)(nil)
	_ caddyfile.Unmarshaler = (*Writer)(nil)
)
