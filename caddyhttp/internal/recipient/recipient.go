// Package recipient has the recipient of messages about events and logs: a key of the notify app,
// and tags that choose among its destinations. It is embedded in the settings of both.
package recipient

import (
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Recipient is who gets the messages that do not come from a request but from
// an event or a log.
type Recipient struct {
	// The name of a key in the `notify` app, which is the global option `notify`
	// in a Caddyfile. Keys of a site cannot be used here. Required. Example:
	// `ops`.
	Key string `json:"key,omitempty"`

	// A tag expression that chooses among the URLs of the key, such as
	// `ops,dev`. At least one URL must match. Default: the key's `default_tag`.
	Tag string `json:"tag,omitempty"`

	// Caddyfile has the positions of the settings, for errors; nil for none.
	Caddyfile *block.Info `json:"-"`
}

// Check makes the checks that do not need the app.
func (r *Recipient) Check() error {
	if err := site.CheckKeyName(r.Key); err != nil {
		return err
	}
	if _, err := r.expression(); err != nil {
		return errs.Prefix("tag", err)
	}
	return nil
}

func (r *Recipient) expression() (notifier.TagExpr, error) {
	e, err := notifier.ParseTags(r.Tag)
	if err == nil && r.Tag != "" && e.Empty() {
		err = site.ErrEmptyTag
	}
	return e, err
}

// Find returns the key of the recipient and its targets among the settings of
// the app.
func (r *Recipient) Find(settings *site.Site) (*site.Key, []notifier.Target, error) {
	k := settings.Configured(r.Key) // nil for none
	if k == nil {
		return nil, nil, fmt.Errorf("the global option notify has no key %s; events and logs use the keys of the global option", r.Key)
	}
	e, err := r.expression()
	if err != nil {
		return nil, nil, errs.Prefix("tag", err)
	}
	targets := k.Select(e)
	inboxOnly := len(k.Targets) == 0 && k.Inbox > 0
	if len(targets) == 0 && settings.Push == nil && !inboxOnly { // with push, a device may have the tag later
		err := fmt.Errorf("none of the %d destinations of the key %s has the tag %s", len(k.Targets), r.Key, r.Tag)
		return nil, nil, r.Caddyfile.Locate("tag", err)
	}
	return k, targets, nil
}

// Post sends a message to the recipient in the background, as [gateway.Gateway.Post] does.
func (r *Recipient) Post(g *gateway.Gateway, m *notifier.Message, source string, log bool, done func(*notifier.Report)) error {
	k, targets, err := r.Find(g.Conf.Global)
	if err != nil {
		return err
	}
	return g.Post(k, targets, m, source, log, done)
}

// Unmarshal reads `notify <key>`.
func (r *Recipient) Unmarshal(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.Err("wrong number of arguments; expected notify <key> [{ … }]")
	}
	r.Caddyfile = &block.Info{}
	r.Caddyfile.Record(block.Begin, d)
	r.Key = args[0]
	if err := site.CheckKeyName(r.Key); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// Remember keeps the positions of module, which has the recipient and was read from a Caddyfile.
func (r *Recipient) Remember(module caddy.Module) {
	if text, err := json.Marshal(module); err == nil { // it fails for nothing that a Caddyfile can say
		block.Remember(string(module.CaddyModule().ID), text, r.Caddyfile)
	}
}

// Locate finds the positions of module, which has the recipient, if it was adapted from a
// Caddyfile in this process.
func (r *Recipient) Locate(module caddy.Module) {
	if text, err := json.Marshal(module); err == nil && r.Caddyfile == nil {
		r.Caddyfile = block.Recall(string(module.CaddyModule().ID), text)
	}
}

// TagOption returns the subdirective tag.
func (r *Recipient) TagOption() block.Option {
	return block.Option{Usage: "tag <expression>", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) error {
		r.Caddyfile.Record("tag", d)
		if args[0] == "" {
			return site.ErrEmptyTag
		}
		r.Tag = args[0]
		_, err := r.expression()
		return err
	}}
}

// TypeOption returns the subdirective type of a message.
func TypeOption(to *string) block.Option {
	return block.Option{Usage: "type info|success|warning|failure", Min: 1, Max: 1, Line: func(args []string) error {
		t, err := notifier.ParseType(args[0])
		*to = string(t)
		return err
	}}
}

// TextOption returns a subdirective with a text in which the placeholders of s
// may occur.
func (r *Recipient) TextOption(name string, to *string, s placeholder.Scope) block.Option {
	return block.Option{Usage: name + " <text>", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) error {
		r.Caddyfile.Record(name, d)
		if args[0] == "" {
			return block.ErrEmptyText
		}
		*to = args[0]
		return placeholder.CheckText(args[0], s)
	}}
}
