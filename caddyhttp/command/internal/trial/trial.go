// Package trial loads a whole configuration of Caddy without starting it, and collects the warnings
// that the gateway would give.
package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	notify "github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/caddyhttp/routing"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Config is a configuration that was loaded on trial.
type Config struct {
	JSON     []byte                // the configuration in Caddy's own format
	Admin    caddy.AdminConfig     // of the configuration
	Conf     *outbox.Configuration // nil if the configuration has no notify
	Warnings []Warning             // what the gateway would warn of when it starts

	cleanUp func()
}

// Warning is a warning that the gateway would give.
type Warning struct {
	About routing.About
	Text  string
}

// Close removes what loading has made.
func (c *Config) Close() { c.cleanUp() }

// NameOf returns how a message names a file; - is standard input.
func NameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// Load reads a configuration as [notify.ReadAdapted] does and loads it as Caddy would, with
// all checks of the start. The error says why Caddy would not start with it. Its log lines
// are not shown.
func Load(stdin io.Reader, file, adapter string) (*Config, error) {
	text, err := notify.ReadAdapted(stdin, file, adapter)
	if err != nil {
		return nil, err
	}
	c := &Config{JSON: text}
	var parsed caddy.Config
	if err := json.Unmarshal(caddy.RemoveMetaFields(text), &parsed); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if parsed.Admin != nil {
		c.Admin = *parsed.Admin
	}
	quiet(&parsed)
	provisioned, err := caddy.ProvisionContext(&parsed)
	if err != nil {
		return nil, shorten(err)
	}
	ctx, cleanUp := caddy.NewContext(provisioned)
	c.cleanUp = cleanUp
	app, err := ctx.AppIfConfigured("notify")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return c, nil
	}
	if err == nil {
		a := app.(*notify.App)
		c.Conf = &a.Gateway().Conf
		err = a.CheckWith(func(about routing.About, text string) { c.Warnings = append(c.Warnings, Warning{about, text}) })
	}
	if err != nil {
		cleanUp()
		return nil, err
	}
	return c, nil
}

// shorten removes the modules of Caddy from the beginning of an error of the gateway. Caddy writes
// them before the error, and does not wrap it.
func shorten(err error) error {
	text := err.Error()
	for _, module := range []string{"http.handlers.notify", "notify"} {
		if _, after, ok := strings.Cut(text, "provision "+module+": "); ok {
			text = after
		}
	}
	return errors.New(text)
}

// quiet keeps the log off standard error and standard output, unless the configuration
// writes it elsewhere, which is part of what is checked.
func quiet(c *caddy.Config) {
	if c.Logging == nil {
		c.Logging = new(caddy.Logging)
	}
	if c.Logging.Logs == nil {
		c.Logging.Logs = map[string]*caddy.CustomLog{}
	}
	if c.Logging.Logs["default"] == nil {
		c.Logging.Logs["default"] = new(caddy.CustomLog)
	}
	for _, log := range c.Logging.Logs {
		var writer struct {
			Output string `json:"output"`
		}
		if len(log.WriterRaw) > 0 && json.Unmarshal(log.WriterRaw, &writer) != nil {
			continue // loading reports it
		}
		if writer.Output == "" || writer.Output == "stderr" || writer.Output == "stdout" {
			log.Level = "FATAL" // another writer would be logged
		}
	}
}

// Summary says in a few words what the configuration has.
func (c *Config) Summary() string {
	return words.Count(len(c.Conf.Sites), "site") + ", " + words.Count(len(c.Keys()), "key")
}

// Key is a key with its destinations. If several sites define the key, it has the destinations of
// all.
type Key struct {
	Name    string
	Site    *site.Site // that defines it first
	Targets []notifier.Target
}

// Keys returns the keys of the configuration, sorted by their names.
func (c *Config) Keys() (all []Key) {
	if c.Conf == nil {
		return nil
	}
	definitions := c.Conf.Definitions()
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		k := Key{Name: name, Site: definitions[name][0].Site}
		for _, d := range definitions[name] {
			for _, t := range d.Key.Targets {
				if !slices.ContainsFunc(k.Targets, func(o notifier.Target) bool { return o.Hash() == t.Hash() && slices.Equal(o.Tags, t.Tags) }) {
					k.Targets = append(k.Targets, t)
				}
			}
		}
		all = append(all, k)
	}
	return all
}
