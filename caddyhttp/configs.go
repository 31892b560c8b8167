package caddyhttp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Configs turns on saved configurations: clients save notification URLs under a
// key over HTTP, with the routes of the Apprise API. They are stored in Caddy's
// storage. Keys of the configuration take precedence over saved keys of the
// same name, and cannot be read or changed over HTTP.
//
// Saved keys belong to a space. Sites that name the same space have the same keys.
type Configs struct {
	// The name of the space: 1 to 64 lower-case letters, digits, `_` and `-`, but not
	// `default`. Sites with the same space must have the same `trust`, `include` and
	// `secret`. Default: the space without a name, which only one site may use, or all
	// sites and mails with the `configs` of the app.
	Space string `json:"space,omitempty"`

	// Values for `${NAME}` in saved configurations, by name. Names have letters, digits
	// and `_`, and ignore case. Placeholders are replaced in the values when the
	// configuration loads; saved configurations cannot read anything else. With
	// `trust` `client`, a variable is a whole URL, because whoever saves a URL could
	// send a part of it to a server of their own. Without variables, `${NAME}` is a
	// text like any other. Example: `{"OPS": "{env.OPS_URL}"}`. Default: none.
	Variables map[string]string `json:"variables,omitempty"`

	// What a message without a tag reaches: a tag expression, such as `ops,dev`, or
	// `untagged` for the URLs without tags, as with the Apprise API. If a key has no
	// such URL, the answer is 424. Default: every URL of the key.
	DefaultTag string `json:"default_tag,omitempty"`

	// Who may read and change saved configurations. `user` allows users that an
	// authentication handler before this one has authenticated, and clients with
	// a certificate. `open` allows everybody who can send the request. Default:
	// nobody; saved keys can be used, but not read or changed.
	Manage string `json:"manage,omitempty"`

	// The users who may, with `manage` `user`, as the placeholder
	// `{http.auth.user.id}` names them. Then a client certificate does not suffice.
	// Default: every user, and every client with a certificate.
	ManageUsers []string `json:"manage_users,omitempty"`

	// How soon a change by another instance with the same storage takes effect.
	// A duration such as `"1m30s"`, or a number of nanoseconds. Default: 5s.
	Refresh caddy.Duration `json:"refresh,omitempty"`

	// How many keys may be saved. Default: 1000.
	MaxKeys int `json:"max_keys,omitempty"`

	// How large the configuration of a key may be, in bytes. Default: 524288 (512
	// KiB).
	MaxSize int64 `json:"max_size,omitempty"`

	// How many URLs a key may have. Default: 100.
	MaxURLs int `json:"max_urls,omitempty"`

	// The rules for saved URLs. With `client`, `egress` and `client_limits`
	// apply, as for URLs in a request. With `operator`, they do not, as for URLs
	// in the configuration. Default: `client`.
	Trust string `json:"trust,omitempty"`

	// Allows saved configurations to include others by `http` or `https` address.
	// Default: false.
	Include bool `json:"include,omitempty"`

	// The secret that encrypts the stored configurations: any text of at least 16 characters. Placeholders
	// such as `{file./run/secrets/configs}` are replaced when the configuration
	// loads. Default: they are not encrypted.
	Secret string `json:"secret,omitempty"`

	// How long the messages of every saved key can be read, by those who may manage. See
	// `inbox` of a key. Default: the text of a message cannot be read.
	Inbox caddy.Duration `json:"inbox,omitempty"`

	// Rules of every saved key, each for itself.
	Rules
}

// Values of Configs.Trust.
const (
	trustOperator = "operator"
)

// Defaults of Configs.
const (
	defaultConfigRefresh = 5 * time.Second
	defaultConfigKeys    = 1000
	defaultConfigSize    = 512 << 10
	defaultConfigURLs    = 100
)

// resolve returns c with its defaults and without placeholders.
func (c *Configs) resolve() (*Configs, error) {
	out := *c
	if out.Trust == "" {
		out.Trust = saved.TrustClient
	}
	if c.Space != "" {
		if err := saved.CheckSpace(c.Space); err != nil {
			return nil, err
		}
	}
	switch {
	case out.Trust != saved.TrustClient && out.Trust != trustOperator:
		return nil, errors.New("trust must be client or operator")
	case c.Refresh < 0 || c.MaxKeys < 0 || c.MaxSize < 0 || c.MaxURLs < 0:
		return nil, errors.New("refresh, max_keys, max_size and max_urls must be above 0")
	}
	if _, err := newManagers(c.Manage, c.ManageUsers); err != nil {
		return nil, err
	}
	if err := c.key().to(new(site.KeyOptions)); err != nil {
		return nil, err
	}
	if err := c.Rules.checkSavedRules(); err != nil {
		return nil, err
	}
	if out.Refresh == 0 {
		out.Refresh = caddy.Duration(defaultConfigRefresh)
	}
	if out.MaxKeys == 0 {
		out.MaxKeys = defaultConfigKeys
	}
	if out.MaxSize == 0 {
		out.MaxSize = defaultConfigSize
	}
	if out.MaxURLs == 0 {
		out.MaxURLs = defaultConfigURLs
	}
	if c.Secret == "" {
		return &out, nil
	}
	var err error
	if out.Secret, err = placeholder.Resolve(c.Secret); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if out.Secret == "" {
		return nil, errors.New("secret: it is empty; write any text of 16 or more characters")
	}
	return &out, nil
}

// newSavedKeys returns the saved keys of a site, or nil if it has no configs. saves means
// that the site lets clients save keys if configs has manage.
func newSavedKeys(
	r *settled, in *saved.Spaces, owner saved.ConfigsOwner, saves bool, sender *notifier.Sender, log *zap.Logger,
) (*saved.Keys, error) {
	if r.configs == nil {
		return nil, nil
	}
	o, err := r.configs.options()
	if err != nil {
		return nil, err
	}
	return saved.New(o, r.Site, in, owner, saves, sender, log)
}

// spaceOptions returns the options that all sites of a space have in common.
func (c *Configs) spaceOptions() saved.Options {
	return saved.Options{Space: c.Space, Secret: c.Secret, Include: c.Include, Trusted: c.Trust == trustOperator}
}

// options returns the options of saved keys. c has its defaults.
func (c *Configs) options() (o saved.Options, err error) {
	o = c.spaceOptions()
	var key site.KeyOptions
	if err = c.key().to(&key); err != nil {
		return o, err
	}
	o.DefaultTag, o.KeySettings = key.DefaultTag, key.KeySettings
	o.Manage, o.Refresh = c.Manage != "", time.Duration(c.Refresh)
	o.MaxKeys, o.MaxSize, o.MaxURLs = c.MaxKeys, c.MaxSize, c.MaxURLs
	values, err := newSavedVariables(c)
	if err != nil {
		return o, errs.Prefix("variables", err)
	}
	o.Expand, o.Value = expand(values), values.Value
	return o, nil
}

// checkManageUsers returns an error if a user cannot exist.
func checkManageUsers(users []string) error {
	for _, name := range users {
		if name == "" || strings.Contains(name, "{") {
			return errors.New("each user is a name that an authentication handler finds; it must not be empty or have placeholders")
		}
	}
	return nil
}

// readConfigs reads a block configs, which may be empty.
func (b *settingsBlock) readConfigs(d *caddyfile.Dispenser, args []string) error {
	c := &Configs{}
	b.to.Configs = c
	b.to.Caddyfile.Record("configs", d)
	b.to.Caddyfile.Imports = block.ImportsOf(d)
	if len(args) > 0 {
		if err := saved.CheckSpace(args[0]); err != nil {
			return d.WrapErr(errs.Prefix("configs", err))
		}
		c.Space = args[0]
	}
	choice := func(to *string, first, second string) func([]string) error {
		return func(args []string) error {
			if args[0] != first && args[0] != second {
				return fmt.Errorf("it must be %s or %s", first, second)
			}
			*to = args[0]
			return nil
		}
	}
	k := &keyBlock{settings: b, file: d.File()} // whose options hold for every saved key
	known := k.options(true)
	maps.Copy(known, block.Options{
		"manage":   {Usage: "manage [open|<user...>]", Max: math.MaxInt, Line: readManage(&c.Manage, &c.ManageUsers)},
		"refresh":  {Usage: "refresh <duration>", Min: 1, Max: 1, Line: block.Duration(&c.Refresh)},
		"max_keys": {Usage: "max_keys <n>", Min: 1, Max: 1, Line: block.Number(&c.MaxKeys, 1, math.MaxInt32)},
		"max_size": {Usage: "max_size <size>", Min: 1, Max: 1, Line: block.Size(&c.MaxSize)},
		"max_urls": {Usage: "max_urls <n>", Min: 1, Max: 1, Line: block.Number(&c.MaxURLs, 1, math.MaxInt32)},
		"trust":    {Usage: "trust client|operator", Min: 1, Max: 1, Line: choice(&c.Trust, saved.TrustClient, trustOperator)},
		"include":  {Usage: "include on|off", Min: 1, Max: 1, Line: block.On(&c.Include)},
		"secret":   {Usage: "secret <text>", Min: 1, Max: 1, Line: block.Text(&c.Secret, placeholder.Check)},
	})
	err := block.ReadOptional(d, "configs", known)
	c.setKey(&k.Key)
	return err
}

// key returns a key with the options of every saved key, and setKey sets them.
func (c *Configs) key() *Key {
	return &Key{Variables: c.Variables, DefaultTag: c.DefaultTag, Inbox: c.Inbox, Rules: c.Rules}
}

func (c *Configs) setKey(k *Key) {
	c.Variables, c.DefaultTag, c.Inbox, c.Rules = k.Variables, k.DefaultTag, k.Inbox, k.Rules
}

// siteBlock identifies a notify block of a Caddyfile: see Settings.Block.
type siteBlock int

// configsOwner returns who has the configs of s, whose module is self.
func (s *Settings) configsOwner(self any) saved.ConfigsOwner {
	o := saved.ConfigsOwner{ID: self}
	if info := s.Caddyfile; info != nil {
		if o.At = info.Line("configs"); o.At != "" && info.Imports != "" {
			o.At += ", through " + info.Imports
		}
	}
	if s.Block != 0 {
		o.ID = siteBlock(s.Block)
	}
	return o
}

// newSavedVariables returns the variables of c. With trust client, each must be a
// whole URL.
func newSavedVariables(c *Configs) (*placeholder.Variables, error) {
	values, err := placeholder.NewVariables(c.Variables)
	if err != nil || values == nil || c.Trust != saved.TrustClient {
		return values, err
	}
	for name := range c.Variables {
		url, err := values.Expand("${" + name + "}")
		if err == nil {
			_, err = parseUnshared(url, notifier.Files{})
		}
		if err != nil {
			return nil, fmt.Errorf("the variable %s must be a notification URL, unless trust is operator: %w", name, err)
		}
	}
	return values, nil
}

// expand returns a function for saved.Options, or nil for no variables.
func expand(values *placeholder.Variables) func(string, []notifier.Variable) (string, bool, bool, error) {
	if values == nil {
		return nil
	}
	return func(url string, declared []notifier.Variable) (expanded string, found, whole bool, err error) {
		if !values.Has(url, declared...) {
			return url, false, false, nil
		}
		expanded, err = values.Expand(url, declared...)
		return expanded, true, values.IsVariable(url), err
	}
}
