package events

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

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler sends events of Caddy as messages: a certificate that could not
// be renewed, an upstream that is down, a server that stops. It sends in the
// background, so that nothing waits for the message.
//
// The events of Caddy have specific titles and texts; other events are shown with their data. In
// a title or body that is set here, placeholders are replaced: placeholders of the event, such as
// `{event.name}`, `{event.time}` and `{event.data.identifier}`, and global ones, such as
// `{system.hostname}`.
//
// Some events make no message: `tls_get_certificate`, which is emitted for each
// TLS handshake; `stopping`, if another configuration replaces this one; and
// `notify_failed` and `notify_delivered`, if they are about the same key. A
// message about one of these two emits no event itself.
type Handler struct {
	recipient.Recipient

	// The title of the message. Example: `{event.name} on {system.hostname}`.
	// Default: a title that fits the event.
	Title string `json:"title,omitempty"`

	// The text of the message. Default: a text that fits the event.
	Body string `json:"body,omitempty"`

	// The format of `body`: `text`, `markdown` or `html`. In `html`, the values
	// of placeholders are escaped. Default: `text`.
	Format string `json:"format,omitempty"`

	// The type of the message: `info`, `success`, `warning` or `failure`.
	// Default: a type that fits the event.
	Type string `json:"type,omitempty"`

	gateway     *gateway.Gateway
	log         *zap.Logger
	messageType notifier.Type // "" for the event's
	format      markup.Format
	warnedOfTLS atomic.Bool // about tls_get_certificate
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "events.handlers.notify",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.log = ctx.Logger()
	h.Locate(h)
	if err := h.loadGateway(ctx); err != nil {
		return err
	}
	s := currentSubscription(ctx)
	if s == nil {
		return block.LogRejected(h.log, h.Caddyfile.Locate(block.Begin, h.provision(nil)))
	}
	// Caddy's errors do not name the event.
	on := "on " + cmp.Or(strings.Join(s.Events, ", "), "*") + " notify: "
	if err := h.provision(s.Events); err != nil {
		return block.LogRejected(h.log, h.Caddyfile.Describe(on, err))
	}
	for _, name := range s.Events {
		if err := checkName(name); err != nil {
			h.log.Warn(h.Caddyfile.Describe(on, err).Error())
		}
	}
	return nil
}

// currentSubscription returns the subscription whose handlers are being
// provisioned, or nil if it is unknown.
func currentSubscription(ctx caddy.Context) *caddyevents.Subscription {
	for _, m := range ctx.Modules() {
		app, ok := m.(*caddyevents.App)
		if !ok {
			continue
		}
		for _, s := range app.Subscriptions {
			if s.HandlersRaw == nil {
				continue // its handlers are provisioned
			}
			return s
		}
	}
	return nil
}

// loadGateway sets gateway. The app may still be provisioning, because it loads the
// events app, but its keys are ready. An error of the app is logged by the app.
func (h *Handler) loadGateway(ctx caddy.Context) error {
	app, err := ctx.App("notify")
	if err != nil {
		return fmt.Errorf("loading the notify app: %w", err)
	}
	h.gateway = app.(interface{ Gateway() *gateway.Gateway }).Gateway() // the package of the app imports this one
	return nil
}

// textPlaceholders are the placeholders of the text of a message about an event.
var textPlaceholders = placeholder.Scope{
	Text: "a message about an event", Has: isPlaceholder,
	Allowed: "{event.name}, {event.data.<name>}, {system.hostname} or {env.NAME}",
}

func isPlaceholder(name string) bool {
	switch name {
	case "event", "event.id", "event.name", "event.time", "event.time_unix", "event.module", "event.data":
		return true
	}
	return strings.HasPrefix(name, "event.data.")
}

func (h *Handler) provision(names []string) error {
	if err := h.Recipient.Check(); err != nil {
		return err
	}
	for name, text := range map[string]string{"title": h.Title, "body": h.Body} {
		if err := placeholder.CheckTextAndValues(text, textPlaceholders); err != nil {
			return h.Caddyfile.Locate(name, errs.Prefix(name, err))
		}
		if err := checkData(text, names); err != nil {
			return h.Caddyfile.Locate(name, errs.Prefix(name, err))
		}
	}
	var err error
	if h.Type != "" {
		if h.messageType, err = notifier.ParseType(h.Type); err != nil {
			return err
		}
	}
	if h.format, err = markup.ParseFormat(h.Format); err != nil {
		return err
	}
	if h.Format != "" && h.Body == "" {
		return errFormatWithoutBody
	}
	_, _, err = h.Find(h.gateway.Conf.Global)
	return err
}

var errFormatWithoutBody = errors.New("format has no effect without body; add a body or remove format")

// Handle implements caddyevents.Handler. It never waits and never returns an
// error, because an error can abort what emits the event.
func (h *Handler) Handle(ctx context.Context, e caddy.Event) error {
	if !h.wants(e) {
		return nil
	}
	source := site.SourceEvent
	if event.CausesNone(e.Name()) {
		source = site.SourceOwnEvent
	}
	// The message is made here, because the emitter may change the event's data
	// afterwards.
	err := h.Recipient.Post(h.gateway, h.message(ctx, e), source, true, nil)
	switch {
	case errors.Is(err, outbox.ErrQueueFull):
		h.reportDropped()
	case err != nil:
		h.log.Error("event not sent", zap.String("event", e.Name()), zap.Error(err))
	}
	return nil
}

// reportDropped logs that the background queue had no room for a message.
func (h *Handler) reportDropped() {
	h.gateway.Conf.Shared.Background.Dropped.Add(1, func(n int) {
		h.gateway.Conf.Log.Error("messages not sent because too many wait", zap.Int("messages", n))
	})
}

// wants reports whether the event makes a message.
func (h *Handler) wants(e caddy.Event) bool {
	switch name := e.Name(); {
	case event.AboutMessage(name):
		return e.Data["key"] != h.Key
	case name == "stopping":
		return !isReload()
	case name == "tls_get_certificate":
		if h.warnedOfTLS.CompareAndSwap(false, true) {
			h.log.Warn("the event tls_get_certificate is not sent, because it is emitted for each TLS handshake")
		}
		return false
	}
	return true
}

// isReload reports, while a configuration starts or stops, whether it replaces
// another or is replaced.
func isReload() bool { return !caddy.Exiting() && caddy.ActiveContext().Context != nil }

// Limits of a message about an event, in bytes.
const (
	maxTitle = 500
	maxBody  = 32 << 10
)

// message returns the message about the event.
func (h *Handler) message(ctx context.Context, e caddy.Event) *notifier.Message {
	t := describe(e, isReload())
	// The default text has no mention, but may quote strangers: an issuer's error
	// repeats what the server of a name has answered. A body that is set here is the
	// operator's.
	m := &notifier.Message{Title: t.Title, Body: t.Body, Type: t.Type, Foreign: h.Body == "", Time: e.Timestamp()}
	if h.messageType != "" {
		m.Type = h.messageType
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
			m.Body, m.Format = eventReplacer(repl, h.format == markup.HTML).ReplaceKnown(h.Body, ""), h.format
		}
	}
	m.Title, m.Body = markup.TruncateBytes(markup.FirstLine(m.Title), maxTitle), markup.TruncateBytes(m.Body, maxBody)
	if strings.TrimSpace(m.Body) == "" {
		m.Body = m.Title // some destinations reject an empty text
	}
	return m
}

// eventReplacer returns a replacer that formats the event's data for people
// and, if escape is set, as HTML.
func eventReplacer(base *caddy.Replacer, escape bool) *caddy.Replacer {
	r := caddy.NewEmptyReplacer()
	r.Map(func(name string) (any, bool) {
		v, ok := base.Get(name)
		if !ok || !strings.HasPrefix(name, "event.") {
			return v, ok
		}
		text := formatValue(v)
		if escape {
			text = html.EscapeString(text)
		}
		return text, true
	})
	return r
}

// MarshalLogObject implements zapcore.ObjectMarshaler. Caddy's debug log prints
// the handler with each event.
func (h *Handler) MarshalLogObject(enc zapcore.ObjectEncoder) error {
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
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := h.Unmarshal(d); err != nil {
		return err
	}
	start := *d
	err := block.ReadOptional(d, "notify", block.Options{
		"title": h.TextOption("title", &h.Title, textPlaceholders),
		"body":  h.TextOption("body", &h.Body, textPlaceholders),
		"format": {Usage: "format text|markdown|html", Min: 1, Max: 1, Line: func(args []string) error {
			format, err := markup.ParseFormat(args[0])
			h.Format = string(format)
			return err
		}},
		"type": recipient.TypeOption(&h.Type),
		"tag":  h.TagOption(),
	})
	if err == nil && h.Format != "" && h.Body == "" {
		err = start.WrapErr(errFormatWithoutBody)
	}
	h.Remember(h)
	return err
}

// Interface guards
var (
	_ caddy.Provisioner       = (*Handler)(nil)
	_ caddyevents.Handler     = (*Handler)(nil)
	_ caddyfile.Unmarshaler   = (*Handler)(nil)
	_ zapcore.ObjectMarshaler = (*Handler)(nil)
)
