package caddyhttp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Config is a Caddy configuration that a command reads. Nothing of it is
// started. The zero Config is a configuration without the gateway.
type Config struct {
	app     Settings
	push    *Push // nil for none
	sites   []*Settings
	storage json.RawMessage
}

// ReadConfig reads a configuration file, by default the Caddyfile in the working
// directory. The file "-" is stdin. By default, the adapter is caddyfile, unless
// the file is JSON.
func ReadConfig(stdin io.Reader, file, adapter string) (*Config, error) {
	text, err := ReadAdapted(stdin, file, adapter)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return c, nil
}

// ReadAdapted returns a configuration file as JSON, adapted if necessary. It takes the same
// arguments as [ReadConfig].
func ReadAdapted(stdin io.Reader, file, adapter string) ([]byte, error) {
	file = cmp.Or(file, "Caddyfile")
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w; set --config to its file", err)
	}
	if adapter == "" && json.Valid(text) {
		return text, nil
	}
	a := caddyconfig.GetAdapter(cmp.Or(adapter, "caddyfile"))
	if a == nil {
		return nil, fmt.Errorf("there is no config adapter %s", adapter)
	}
	adapted, _, err := a.Adapt(text, map[string]any{"filename": file})
	if err != nil {
		hint := ""
		if cmp.Or(adapter, "caddyfile") == "caddyfile" {
			hint = braceHint(text, file)
		}
		return nil, fmt.Errorf("adapting the configuration: %w%s", err, hint)
	}
	return adapted, nil
}

// parseConfig finds the settings of the app notify and of each handler notify in
// a configuration.
func parseConfig(text []byte) (*Config, error) {
	var c struct {
		Apps struct {
			Notify json.RawMessage `json:"notify"`
			HTTP   json.RawMessage `json:"http"`
		} `json:"apps"`
		Storage json.RawMessage `json:"storage"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	out := &Config{storage: c.Storage}
	if len(c.Apps.Notify) > 0 {
		app := new(App)
		if err := json.Unmarshal(c.Apps.Notify, app); err != nil {
			return nil, err
		}
		app.locate(appID, app)
		out.app, out.push = app.Settings, app.Push
	}
	if len(c.Apps.HTTP) == 0 {
		return out, nil
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(c.Apps.HTTP))
	d.UseNumber()
	err := d.Decode(&tree)
	if err == nil {
		out.sites, err = findHandlers(tree, nil)
	}
	return out, err
}

// findHandlers appends to found the settings of the notify handlers in a JSON
// value, at any depth, because other handlers can contain them.
func findHandlers(tree any, found []*Settings) (_ []*Settings, err error) {
	switch tree := tree.(type) {
	case []any:
		for _, v := range tree {
			if found, err = findHandlers(v, found); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if tree["handler"] == "notify" {
			text, err := json.Marshal(tree)
			if err != nil {
				return nil, err
			}
			s := new(Settings)
			err = json.Unmarshal(text, s)
			s.locate(handlerID, s)
			return append(found, s), err
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if found, err = findHandlers(tree[name], found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Validate returns an error if the settings of the app or of a site cannot be
// used.
func (c *Config) Validate() error {
	push, err := c.push.resolve()
	if err != nil {
		return errs.Prefix("push", err)
	}
	var base *settled
	for i, s := range append([]*Settings{&c.app}, c.sites...) {
		r, err := s.resolve(base, push, parseUnshared, zap.NewNop())
		if err != nil {
			return err
		}
		if i == 0 {
			base = r
		}
	}
	return nil
}

// Source returns the source of a name, without its signature scheme and token, whose placeholders
// may have no value here. It looks for the source in the sites with the key, then in the app,
// then in other sites, and last among the built-in ones.
func (c *Config) Source(name, key string) (*source.Source, error) {
	found := c.app.Sources[name]
	for _, s := range c.sites {
		_, hasKey := s.Keys[key]
		if own := s.Sources[name]; own != nil && (hasKey || found == nil) {
			found = own
		}
	}
	if found == nil {
		found = new(Source)
	}
	open := *found
	open.Sign, open.Secret, open.Token = "", "", ""
	src, err := open.load(name)
	if err != nil {
		return nil, errs.Prefix("from "+name, err)
	}
	return src, nil
}

// braceHint returns the end of an error of the Caddyfile adapter that says where a } may be
// missing, or "" if none is. Caddy's own error names the line at which it noticed, which is
// often the last one.
func braceHint(text []byte, file string) string {
	line, ok := missingBrace(text, file)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; a } is missing for the block that begins in line %d", line)
}

// missingBrace returns the line of a block without an end, and reports whether there is one.
// If several could be it, it is the one that the } of another block would end if the
// indentation counted.
func missingBrace(text []byte, file string) (line int, ok bool) {
	tokens, err := caddyfile.Tokenize(text, file)
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(text), "\n")
	indent := func(line int) int {
		if line < 1 || line > len(lines) {
			return 0
		}
		return len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	}
	var open []int // the lines of the blocks that have not ended
	suspect := 0   // the line of a block that a } with less indentation has ended
	for _, t := range tokens {
		switch {
		case t.Quoted():
		case t.Text == "{":
			open = append(open, t.Line)
		case t.Text == "}" && len(open) > 0:
			last := open[len(open)-1]
			if suspect == 0 && last != t.Line && indent(last) > indent(t.Line) {
				suspect = last
			}
			open = open[:len(open)-1]
		}
	}
	switch {
	case len(open) == 0:
		return 0, false
	case suspect > 0:
		return suspect, true
	}
	return open[len(open)-1], true
}
