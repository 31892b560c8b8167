package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	caddy.RegisterModule(new(EventHandler))
}

// EventHandler turns events of Caddy into messages: a certificate that could
// not be renewed, an upstream that is down, a server that stops. The message
// is sent in the background, so that what the event tells of is not held up.
//
// Every event that Caddy emits has a text of its own; other events are shown
// with their data. In texts that are set here, placeholders are replaced:
// those of the event, such as `{event.name}`, `{event.time}` and
// `{event.data.identifier}`, and the global ones, such as `{system.hostname}`.
//
// Three cases make no message. `tls_get_certificate` is emitted with each TLS
// handshake. `stopping` is also emitted when the configuration is reloaded,
// and tells nothing then that `started` does not. `notify_failed` and
// `notify_delivered` are not sent to the key that they tell of; a message about
// one of them causes no other.
type EventHandler struct {
	Recipient

	// The title of the message. Default: a text that fits the event.
	Title string `json:"title,omitempty"`

	// The text of the message. Default: a text that fits the event.
	Body string `json:"body,omitempty"`

	// How `body` is written: `text`, `markdown` or `html`. Values that
	// placeholders bring are escaped in `html`. Default: text.
	Format string `json:"format,omitempty"`

	// The type of the message: `info`, `success`, `warning` or `failure`.
	// Default: what fits the event.
	Type string `json:"type,omitempty"`

	app        *App
	log        *zap.Logger
	kind       notifier.Type
	format     notifier.Format
	handshakes atomic.Bool // the warning about them is out
}

// CaddyModule returns the Caddy module information.
func (*EventHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "events.handlers.notify",
		New: func() caddy.Module { return new(EventHandler) },
	}
}

// Provision implements caddy.Provisioner.
func (h *EventHandler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	if err := h.provision(ctx); err != nil {
		return fmt.Errorf("%s%w", subscribed(ctx), err)
	}
	return nil
}

// subscribed says which events a handler is for that is being provisioned,
// since an event may have several and Caddy's errors name none.
func subscribed(ctx caddy.Context) string {
	for _, m := range ctx.Modules() {
		app, ok := m.(*caddyevents.App)
		if !ok {
			continue
		}
		for _, s := range app.Subscriptions {
			if s.HandlersRaw == nil {
				continue // its handlers are loaded
			}
			events := strings.Join(s.Events, ", ")
			return "on " + cmp.Or(events, "*") + " notify: "
		}
	}
	return ""
}

func (h *EventHandler) provision(ctx caddy.Context) error {
	if err := h.Recipient.check(); err != nil {
		return err
	}
	for name, text := range map[string]string{"title": h.Title, "body": h.Body} {
		if err := checkWhole(text, eventPlaceholders); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if h.Type != "" {
		var err error
		if h.kind, err = notifier.ParseType(h.Type); err != nil {
			return err
		}
	}
	var err error
	if h.format, err = markup.ParseFormat(h.Format); err != nil {
		return err
	}
	if h.Format != "" && h.Body == "" {
		return errFormatAlone
	}
	app, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	// The app may still be busy loading the app of this handler, but by then
	// it knows its keys.
	h.app = app.(*App)
	_, _, err = h.find(h.app.resolved)
	return err
}

var errFormatAlone = errors.New("format says how body is written, but there is no body")

// Handle implements caddyevents.Handler. It returns at once, and never an
// error, which could stop what the event tells of.
func (h *EventHandler) Handle(ctx context.Context, e caddy.Event) error {
	if !h.wants(e) {
		return nil
	}
	source := sourceEvent
	if isOwnEvent(e.Name()) {
		source = sourceOwnEvent
	}
	// The texts are made here: the event's data are the emitter's.
	err := h.app.post(&h.Recipient, h.message(ctx, e), source, true, nil)
	switch {
	case errors.Is(err, errQueueFull):
		h.app.reportDropped()
	case err != nil:
		h.log.Error("no message for the event", zap.String("event", e.Name()), zap.Error(err))
	}
	return nil
}

func isOwnEvent(name string) bool { return name == eventFailed || name == eventDelivered }

// wants says whether the event is one to send a message for.
func (h *EventHandler) wants(e caddy.Event) bool {
	switch e.Name() {
	case eventFailed, eventDelivered:
		return e.Data["key"] != h.Key
	case "stopping":
		return !replaced()
	case "tls_get_certificate":
		if h.handshakes.CompareAndSwap(false, true) {
			h.log.Warn("the event tls_get_certificate makes no message, since there is one for each TLS handshake")
		}
		return false
	}
	return true
}

// replaced says, when a configuration starts or stops, whether there is
// another: one that it replaces, or one that replaces it.
func replaced() bool { return !caddy.Exiting() && caddy.ActiveContext().Context != nil }

// The bounds of what an event can make of a text.
const (
	maxEventTitle = 500
	maxEventBody  = 32 << 10
)

// message puts the event into words.
func (h *EventHandler) message(ctx context.Context, e caddy.Event) *notifier.Message {
	t := describeEvent(e, replaced())
	m := &notifier.Message{Title: t.title, Body: t.body, Type: t.kind, Time: e.Timestamp()}
	if h.kind != "" {
		m.Type = h.kind
	}
	if h.Title != "" || h.Body != "" {
		repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if !ok {
			repl = caddy.NewReplacer()
		}
		if h.Title != "" {
			m.Title = eventReplacer(repl, false).ReplaceKnown(h.Title, "")
		}
		if h.Body != "" {
			m.Body, m.Format = eventReplacer(repl, h.format == notifier.HTML).ReplaceKnown(h.Body, ""), h.format
		}
	}
	m.Title, m.Body = markup.TruncateBytes(firstLine(m.Title), maxEventTitle), markup.TruncateBytes(m.Body, maxEventBody)
	if strings.TrimSpace(m.Body) == "" {
		m.Body = m.Title // some destinations take no empty text
	}
	return m
}

// eventReplacer is a replacer that writes the event's data for people to
// read, and so that they cannot be taken for HTML where that matters.
func eventReplacer(of *caddy.Replacer, escape bool) *caddy.Replacer {
	r := caddy.NewEmptyReplacer()
	r.Map(func(name string) (any, bool) {
		v, ok := of.Get(name)
		if !ok || !strings.HasPrefix(name, "event.") {
			return v, ok
		}
		text := plain(v)
		if escape {
			text = html.EscapeString(text)
		}
		return text, true
	})
	return r
}

// MarshalLogObject implements zapcore.ObjectMarshaler. Caddy's debug log
// prints the handler with each event.
func (h *EventHandler) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("key", h.Key)
	return nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	notify <key> [{
//		title <text>
//		body <text>
//		format text|markdown|html
//		type info|success|warning|failure
//		tag <expression>
//	}]
func (h *EventHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := h.unmarshal(d); err != nil {
		return err
	}
	start := *d
	err := readBlock(d, "notify", options{
		"title": textOption("title", &h.Title, eventPlaceholders),
		"body":  textOption("body", &h.Body, eventPlaceholders),
		"format": {usage: "format text|markdown|html", min: 1, max: 1, line: func(args []string) error {
			format, err := markup.ParseFormat(args[0])
			h.Format = string(format)
			return err
		}},
		"type": typeOption(&h.Type),
		"tag":  h.tagOption(),
	})
	if err == nil && h.Format != "" && h.Body == "" {
		err = start.WrapErr(errFormatAlone)
	}
	return err
}

// Interface guards
var (
	_ caddy.Provisioner       = (*EventHandler)(nil)
	_ caddyevents.Handler     = (*EventHandler)(nil)
	_ caddyfile.Unmarshaler   = (*EventHandler)(nil)
	_ zapcore.ObjectMarshaler = (*EventHandler)(nil)
)
