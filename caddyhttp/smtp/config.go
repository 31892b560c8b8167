package smtp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/files"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Config is a mail server that turns each mail into a message. The recipient
// `KEY[.TYPE][+TAG]@host` names a key of the app, the type of the message, and the
// tags that choose among the key's URLs. The host can be any name. The subject
// becomes the title. The server accepts a mail when every required destination, or
// the queue, has the message.
//
// Clients on the same machine need no account. Other clients need one, unless
// `trusted_clients` has their address.
type Config struct {
	// The addresses to listen on, in Caddy's form. With `tls`, clients may begin TLS
	// with STARTTLS. Example: `["localhost:25", ":587"]`. Default: none; one of `listen`
	// and `implicit_tls` is required.
	Listen []string `json:"listen,omitempty"`

	// The addresses to listen on where TLS begins at once (RFC 8314). They need
	// `tls`. Example: `[":465"]`. Default: none.
	ImplicitTLS []string `json:"implicit_tls,omitempty"`

	// The name of the server in its greeting. Default: the domain of `tls`, or the
	// name of the machine.
	Hostname string `json:"hostname,omitempty"`

	// The certificate for TLS. Default: none; clients cannot use TLS.
	TLS *TLS `json:"tls,omitempty"`

	// The accounts of clients. They need `tls`, because a client may authenticate
	// only over TLS. Default: none.
	Accounts []Account `json:"accounts,omitempty"`

	// The clients that need no account, in addition to clients on the same machine:
	// ranges in CIDR notation, IP addresses or `private_ranges`. With `none`, every
	// client needs an account, also on the same machine. Example:
	// `["192.168.1.0/24"]`. Default: only clients on the same machine.
	TrustedClients []string `json:"trusted_clients,omitempty"`

	// The maximum size of a mail, in bytes. Attachments count in base64, where they
	// are a third larger. The server announces the limit to clients. Default:
	// 52428800 (50 MiB).
	MaxSize int64 `json:"max_size,omitempty"`

	// The maximum number of recipients of a mail. Further recipients are refused for
	// this mail (452), and most mail servers then send them another one. Default: 50.
	MaxRecipients int `json:"max_recipients,omitempty"`

	// The maximum number of open connections. Clients that need an account may
	// have half of this number, and each of their addresses an eighth. Default:
	// 400.
	MaxConnections int `json:"max_connections,omitempty"`

	// How long the server waits for the next command of a client, and for a whole
	// mail. A duration such as `"2m"`, or a number of nanoseconds. Default: 5m.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

// TLS is the certificate of the mail server: either `domain`, or `certificate`
// and `key`.
type TLS struct {
	// The domain whose certificate Caddy obtains and renews, as for a site of that
	// name. Example: `mail.example.com`.
	Domain string `json:"domain,omitempty"`

	// The path of a file with the certificate and its chain, in PEM. It is read when
	// the configuration loads. Placeholders are replaced.
	Certificate string `json:"certificate,omitempty"`

	// The path of a file with the certificate's key, in PEM. Placeholders are
	// replaced.
	Key string `json:"key,omitempty"`
}

// Account is an account of a mail client.
type Account struct {
	// The user name.
	Username string `json:"username,omitempty"`

	// The hash of the password, as `caddy hash-password` prints it. Placeholders are
	// replaced. Example: `{env.PRINTER_PASSWORD_HASH}`.
	Password string `json:"password,omitempty"`

	// The keys that the account may send to. Default: all.
	Keys []string `json:"keys,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It prints no hashes.
func (c *Config) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("addresses", len(c.Listen)+len(c.ImplicitTLS))
	enc.AddInt("accounts", len(c.Accounts))
	return nil
}

// The defaults of the settings.
const (
	defaultSize        = 50 << 20
	defaultRecipients  = 50
	defaultConnections = 400
	defaultTimeout     = 5 * time.Minute
)

// noClients in trusted_clients stands for no client at all.
const noClients = "none"

var (
	errAddress = errors.New("it is not an address to listen on; " +
		"write a host and a port, such as localhost:25, or only a port, such as :25")
	errNoAddress = errors.New("it has no address; write smtp :25, or implicit_tls :465")
	errNoTLS     = errors.New("implicit_tls needs a certificate; add tls <domain>, or tls <certificate> <key>")
	errAuthNoTLS = errors.New("auth needs a certificate, because a client may send " +
		"its password only over TLS; add tls <domain>, or tls <certificate> <key>")
	errTLS = errors.New("it needs a domain, or the files of a certificate and its key; " +
		"write tls mail.example.com, or tls cert.pem key.pem")
	errDomain = errors.New("Caddy cannot obtain a certificate for it; " +
		"write a domain, such as mail.example.com, or the files of a certificate and its key")
	errHash        = errors.New("the password is not a hash of bcrypt or argon2id; write what caddy hash-password prints")
	errUser        = errors.New("the user name must be 1 to 128 characters without spaces")
	errTrustedNone = errors.New("none stands alone; remove it, or the other ranges")
	errHostname    = errors.New("it must be a host name, such as mail.example.com")
)

var hostname = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)

// check checks the settings before placeholders are replaced.
func (c *Config) check() error {
	if len(c.Listen)+len(c.ImplicitTLS) == 0 {
		return errNoAddress
	}
	if _, err := parseAddresses(slices.Concat(c.Listen, c.ImplicitTLS)); err != nil {
		return err
	}
	if c.Hostname != "" && !hostname.MatchString(c.Hostname) {
		return errs.Prefix("hostname", errHostname)
	}
	switch {
	case c.TLS == nil && len(c.ImplicitTLS) > 0:
		return errNoTLS
	case c.TLS == nil && len(c.Accounts) > 0:
		return errAuthNoTLS
	case c.TLS != nil:
		if err := c.TLS.check(); err != nil {
			return errs.Prefix("tls", err)
		}
	}
	users := map[string]bool{}
	for _, a := range c.Accounts {
		if err := a.check(); err != nil {
			return errs.Prefix("auth", err)
		}
		if users[a.Username] {
			return fmt.Errorf("auth: the user %s occurs twice; remove one", a.Username)
		}
		users[a.Username] = true
	}
	if _, _, err := c.trusted(); err != nil {
		return errs.Prefix("trusted_clients", err)
	}
	switch {
	case c.MaxSize < 0:
		return fmt.Errorf("max_size is %d; it must be a number of bytes above 0", c.MaxSize)
	case c.MaxRecipients < 0:
		return fmt.Errorf("max_recipients is %d; it must be a number above 0", c.MaxRecipients)
	case c.MaxConnections < 0:
		return fmt.Errorf("max_connections is %d; it must be a number above 0", c.MaxConnections)
	case c.Timeout < 0:
		return errors.New("timeout is negative; it must be a duration above 0, such as 5m")
	}
	return nil
}

// parseAddress parses an address to listen on: a TCP address, a Unix socket, or
// a file descriptor, as systemd passes it.
func parseAddress(text string) (caddy.NetworkAddress, error) {
	a, err := caddy.ParseNetworkAddress(text)
	if err != nil {
		return a, errAddress
	}
	switch a.Network {
	case "unix", "fd":
		return a, nil
	case "tcp", "tcp4", "tcp6":
		if a.StartPort > 0 {
			return a, nil
		}
	}
	return a, errAddress
}

func parseAddresses(texts []string) (addresses []caddy.NetworkAddress, err error) {
	for _, text := range texts {
		a, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

func (c *TLS) check() error {
	if err := errors.Join(placeholder.Check(c.Certificate), placeholder.Check(c.Key)); err != nil {
		return err
	}
	switch {
	case (c.Domain == "") == (c.Certificate == ""), (c.Certificate == "") != (c.Key == ""):
		return errTLS
	case c.Domain != "" && !certmagic.SubjectQualifiesForCert(c.Domain):
		return errDomain
	}
	return nil
}

func (a *Account) check() error {
	if a.Username == "" || len(a.Username) > 128 || strings.ContainsFunc(a.Username, func(r rune) bool { return r <= ' ' }) {
		return errUser
	}
	for _, name := range a.Keys {
		if err := site.CheckKeyName(name); err != nil {
			return err
		}
	}
	if strings.Contains(a.Password, "{") {
		return placeholder.Check(a.Password)
	}
	return checkHash(a.Password)
}

// trusted returns the ranges of trusted_clients and reports whether clients on the
// same machine are trusted.
func (c *Config) trusted() (ranges []netip.Prefix, local bool, err error) {
	if slices.Contains(c.TrustedClients, noClients) {
		if len(c.TrustedClients) > 1 {
			return nil, false, errTrustedNone
		}
		return nil, false, nil
	}
	for _, text := range c.TrustedClients {
		r, err := egress.ParseRanges(text)
		if err != nil {
			return nil, false, err
		}
		ranges = append(ranges, r...)
	}
	return ranges, true, nil
}

// settings are the settings of the mail server after defaults are applied,
// placeholders replaced and files read.
type settings struct {
	listen, implicitTLS []caddy.NetworkAddress
	domain              string           // Caddy manages its certificate; "" for none
	certificate         *tls.Certificate // nil for none
	server              smtpd.Config     // without the values that are known when the server starts
}

// resolve returns the settings with placeholders replaced and files read.
func (c *Config) resolve() (*settings, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &settings{server: smtpd.Config{
		Hostname: c.Hostname, MaxSize: cmp.Or(c.MaxSize, defaultSize), MaxRecipients: cmp.Or(c.MaxRecipients, defaultRecipients),
		MaxConnections: cmp.Or(c.MaxConnections, defaultConnections), Timeout: cmp.Or(time.Duration(c.Timeout), defaultTimeout),
	}}
	var err error
	if s.listen, err = parseAddresses(c.Listen); err != nil {
		return nil, err
	}
	if s.implicitTLS, err = parseAddresses(c.ImplicitTLS); err != nil {
		return nil, err
	}
	if s.server.Trusted, s.server.Local, err = c.trusted(); err != nil {
		return nil, errs.Prefix("trusted_clients", err)
	}
	if c.TLS != nil {
		s.domain = c.TLS.Domain
		s.server.Hostname = cmp.Or(s.server.Hostname, s.domain)
		if s.certificate, err = c.TLS.load(); err != nil {
			return nil, errs.Prefix("tls", err)
		}
	}
	if s.server.Hostname == "" {
		if name, err := os.Hostname(); err == nil && hostname.MatchString(name) {
			s.server.Hostname = name
		}
		s.server.Hostname = cmp.Or(s.server.Hostname, "localhost")
	}
	if s.server.Accounts, err = loadAccounts(c.Accounts); err != nil {
		return nil, errs.Prefix("auth", err)
	}
	return s, nil
}

// load reads the certificate and its key. It returns nil if a domain is set instead.
func (c *TLS) load() (*tls.Certificate, error) {
	if c.Certificate == "" {
		return nil, nil
	}
	var pem [2][]byte
	for i, path := range []string{c.Certificate, c.Key} {
		path, err := placeholder.Resolve(path)
		if err != nil {
			return nil, err
		}
		if pem[i], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("reading the %s: %w", [...]string{"certificate", "key"}[i], errs.WithoutPath(err))
		}
	}
	certificate, err := tls.X509KeyPair(pem[0], pem[1])
	if err != nil {
		return nil, fmt.Errorf("the certificate and the key cannot be used: %w", err)
	}
	return &certificate, nil
}

// AddFiles adds to f the files whose paths are settings.
func (c *Config) AddFiles(f *files.Set) {
	if c == nil || c.TLS == nil || c.TLS.Certificate == "" {
		return
	}
	for _, path := range []string{c.TLS.Certificate, c.TLS.Key} {
		if path, err := placeholder.Resolve(path); err == nil {
			f.Add(path)
		}
	}
}

// Read reads the subdirective smtp with its arguments, and records its positions in info.
func Read(d *caddyfile.Dispenser, addresses []string, info *block.Info) (*Config, error) {
	c := &Config{Listen: addresses}
	info.Record("smtp", d)
	start := *d
	if _, err := parseAddresses(addresses); err != nil {
		return nil, d.WrapErr(errs.Prefix("smtp", err))
	}
	err := block.ReadOptional(d, "smtp", block.Options{
		"implicit_tls": {Usage: "implicit_tls <address...>", Min: 1, Max: math.MaxInt, Repeat: true, Line: func(addresses []string) error {
			c.ImplicitTLS = append(c.ImplicitTLS, addresses...)
			_, err := parseAddresses(addresses)
			return err
		}},
		"hostname": {Usage: "hostname <name>", Min: 1, Max: 1, Line: func(args []string) error {
			if c.Hostname = args[0]; !hostname.MatchString(c.Hostname) {
				return errHostname
			}
			return nil
		}},
		"tls": {Usage: "tls <domain>, or tls <certificate> <key>", Min: 1, Max: 2, At: func(d *caddyfile.Dispenser, args []string) error {
			c.TLS = &TLS{Domain: args[0]}
			if len(args) == 2 {
				c.TLS = &TLS{}
				for i, to := range []*string{&c.TLS.Certificate, &c.TLS.Key} {
					var err error
					if *to, err = block.AbsPath(args[i], d.File()); err != nil {
						return err
					}
				}
			}
			return c.TLS.check()
		}},
		"auth": {Usage: "auth { … }", Block: func(d *caddyfile.Dispenser, _ []string) error { return c.readAccounts(d, info) }},
		"trusted_clients": {
			Usage: "trusted_clients <cidr...>|private_ranges|none", Min: 1, Max: math.MaxInt, Repeat: true,
			Line: func(ranges []string) error {
				c.TrustedClients = append(c.TrustedClients, ranges...)
				_, _, err := c.trusted()
				return err
			},
		},
		"max_size":        {Usage: "max_size <size>", Min: 1, Max: 1, Line: block.Size(&c.MaxSize)},
		"max_recipients":  {Usage: "max_recipients <n>", Min: 1, Max: 1, Line: block.Number(&c.MaxRecipients, 1, math.MaxUint16)},
		"max_connections": {Usage: "max_connections <n>", Min: 1, Max: 1, Line: block.Number(&c.MaxConnections, 1, math.MaxInt32)},
		"timeout":         {Usage: "timeout <duration>", Min: 1, Max: 1, Line: block.Duration(&c.Timeout)},
	})
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, start.WrapErr(errs.Prefix("smtp", err))
	}
	return c, nil
}

// readAccounts reads the accounts, one a line: the user name, the hash of the password,
// and the keys.
func (c *Config) readAccounts(d *caddyfile.Dispenser, info *block.Info) error {
	start := *d
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		a := Account{Username: d.Val()}
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.Err("the hash of the password is missing; write <user> <hash> [<keys...>]")
		}
		a.Password, a.Keys = args[0], args[1:]
		if err := a.check(); err != nil {
			return d.WrapErr(errs.Prefix("auth", err))
		}
		info.Record(AccountName(a.Username), d)
		c.Accounts = append(c.Accounts, a)
	}
	if len(c.Accounts) == 0 {
		return start.Err("auth needs a block with a line for each account: <user> <hash> [<keys...>]")
	}
	return nil
}

// AccountName returns the name of an account in block.Info.
func AccountName(user string) string { return "smtp, account " + user }
