package caddyhttp

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Configs turns on saved configurations: clients save notification URLs under a
// key over HTTP, with the routes of the Apprise API. They are stored in Caddy's
// storage. Keys of the configuration take precedence over saved keys of the
// same name, and cannot be read or changed over HTTP.
type Configs struct {
	// Who may read and change saved configurations. `user` allows users that an
	// authentication handler before this one has authenticated, and clients with
	// a certificate. `open` allows everybody who can send the request. Default:
	// nobody; saved keys can be used, but not read or changed.
	Manage string `json:"manage,omitempty"`

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
}

// Values of Configs.Manage and Configs.Trust.
const (
	manageUser    = "user"
	manageOpen    = "open"
	trustClient   = "client"
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
		out.Trust = trustClient
	}
	switch {
	case out.Manage != "" && out.Manage != manageUser && out.Manage != manageOpen:
		return nil, errors.New("manage must be user or open")
	case out.Trust != trustClient && out.Trust != trustOperator:
		return nil, errors.New("trust must be client or operator")
	case c.Refresh < 0 || c.MaxKeys < 0 || c.MaxSize < 0 || c.MaxURLs < 0:
		return nil, errors.New("refresh, max_keys, max_size and max_urls must be above 0")
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
	if out.Secret, err = resolvePlaceholders(c.Secret); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if out.Secret == "" {
		return nil, errors.New("secret: it is empty; write any text of 16 or more characters")
	}
	return &out, nil
}

// readConfigs reads a block configs, which may be empty.
func (b *settingsBlock) readConfigs(d *caddyfile.Dispenser, _ []string) error {
	c := &Configs{}
	b.Configs = c
	b.Caddyfile.record("configs", d)
	choice := func(to *string, first, second string) func([]string) error {
		return func(args []string) error {
			if args[0] != first && args[0] != second {
				return fmt.Errorf("it must be %s or %s", first, second)
			}
			*to = args[0]
			return nil
		}
	}
	return readBlock(d, "configs", options{
		"manage": {usage: "manage [open]", max: 1, line: func(args []string) error {
			if len(args) > 0 && args[0] != manageOpen {
				return errors.New("it must stand alone, or be followed by open")
			}
			if c.Manage = manageUser; len(args) > 0 {
				c.Manage = manageOpen
			}
			return nil
		}},
		"refresh":  {usage: "refresh <duration>", min: 1, max: 1, line: positiveDuration(&c.Refresh)},
		"max_keys": {usage: "max_keys <n>", min: 1, max: 1, line: number(&c.MaxKeys, 1, math.MaxInt32)},
		"max_size": {usage: "max_size <size>", min: 1, max: 1, line: byteSize(&c.MaxSize)},
		"max_urls": {usage: "max_urls <n>", min: 1, max: 1, line: number(&c.MaxURLs, 1, math.MaxInt32)},
		"trust":    {usage: "trust client|operator", min: 1, max: 1, line: choice(&c.Trust, trustClient, trustOperator)},
		"include": {usage: "include on|off", min: 1, max: 1, line: func(args []string) error {
			var on *bool
			if err := onOff(&on)(args); err != nil {
				return err
			}
			c.Include = *on
			return nil
		}},
		"secret": {usage: "secret <text>", min: 1, max: 1, line: func(args []string) error {
			c.Secret = args[0]
			return checkPlaceholders(args[0])
		}},
	})
}
