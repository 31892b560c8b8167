package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// SMTP is a mail server that turns each mail into a message. The recipient
// `KEY[.TYPE][+TAG]@host` names a key of the app, the type of the message, and the
// tags that choose among the key's URLs. The host can be any name. The subject
// becomes the title. The server accepts a mail when every required destination, or
// the queue, has the message.
//
// Clients on the same machine need no account. Other clients need one, unless
// `trusted_clients` has their address.
type SMTP struct {
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
	TLS *SMTPTLS `json:"tls,omitempty"`

	// The accounts of clients. They need `tls`, because a client may authenticate
	// only over TLS. Default: none.
	Accounts []SMTPAccount `json:"accounts,omitempty"`

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

// SMTPTLS is the certificate of the mail server: either `domain`, or `certificate`
// and `key`.
type SMTPTLS struct {
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

// SMTPAccount is an account of a mail client.
type SMTPAccount struct {
	// The user name.
	Username string `json:"username,omitempty"`

	// The hash of the password, as `caddy hash-password` prints it. Placeholders are
	// replaced. Example: `{env.PRINTER_PASSWORD_HASH}`.
	Password string `json:"password,omitempty"`

	// The keys that the account may send to. Default: all.
	Keys []string `json:"keys,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It prints no hashes.
func (c *SMTP) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("addresses", len(c.Listen)+len(c.ImplicitTLS))
	enc.AddInt("accounts", len(c.Accounts))
	return nil
}

// The defaults of the settings.
const (
	defaultMailSize        = 50 << 20
	defaultMailRecipients  = 50
	defaultMailConnections = 400
	defaultMailTimeout     = 5 * time.Minute
)

// noClients in trusted_clients stands for no client at all.
const noClients = "none"

var (
	errSMTPAddress     = errors.New("it is not an address to listen on; write a host and a port, such as localhost:25, or only a port, such as :25")
	errSMTPNoAddress   = errors.New("it has no address; write smtp :25, or implicit_tls :465")
	errSMTPNoTLS       = errors.New("implicit_tls needs a certificate; add tls <domain>, or tls <certificate> <key>")
	errSMTPAuthNoTLS   = errors.New("auth needs a certificate, because a client may send its password only over TLS; add tls <domain>, or tls <certificate> <key>")
	errSMTPTLS         = errors.New("it needs a domain, or the files of a certificate and its key; write tls mail.example.com, or tls cert.pem key.pem")
	errSMTPDomain      = errors.New("Caddy cannot obtain a certificate for it; write a domain, such as mail.example.com, or the files of a certificate and its key")
	errSMTPHash        = errors.New("the password is not a hash of bcrypt or argon2id; write what caddy hash-password prints")
	errSMTPUser        = errors.New("the user name must be 1 to 128 characters without spaces")
	errSMTPTrustedNone = errors.New("none stands alone; remove it, or the other ranges")
	errSMTPHostname    = errors.New("it must be a host name, such as mail.example.com")
)

var mailHostname = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)

// check checks the settings before placeholders are replaced.
func (c *SMTP) check() error {
	if len(c.Listen)+len(c.ImplicitTLS) == 0 {
		return errSMTPNoAddress
	}
	for _, address := range slices.Concat(c.Listen, c.ImplicitTLS) {
		if _, err := parseMailAddress(address); err != nil {
			return err
		}
	}
	if c.Hostname != "" && !mailHostname.MatchString(c.Hostname) {
		return prefixError("hostname", errSMTPHostname)
	}
	switch {
	case c.TLS == nil && len(c.ImplicitTLS) > 0:
		return errSMTPNoTLS
	case c.TLS == nil && len(c.Accounts) > 0:
		return errSMTPAuthNoTLS
	case c.TLS != nil:
		if err := c.TLS.check(); err != nil {
			return prefixError("tls", err)
		}
	}
	users := map[string]bool{}
	for _, a := range c.Accounts {
		if err := a.check(); err != nil {
			return prefixError("auth", err)
		}
		if users[a.Username] {
			return fmt.Errorf("auth: the user %s occurs twice; remove one", a.Username)
		}
		users[a.Username] = true
	}
	if _, _, err := c.trusted(); err != nil {
		return prefixError("trusted_clients", err)
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

// parseMailAddress parses an address to listen on: a TCP address, a Unix socket, or
// a file descriptor, as systemd passes it.
func parseMailAddress(text string) (caddy.NetworkAddress, error) {
	a, err := caddy.ParseNetworkAddress(text)
	if err != nil {
		return a, errSMTPAddress
	}
	switch a.Network {
	case "unix", "fd":
		return a, nil
	case "tcp", "tcp4", "tcp6":
		if a.StartPort > 0 {
			return a, nil
		}
	}
	return a, errSMTPAddress
}

func (c *SMTPTLS) check() error {
	if err := errors.Join(checkPlaceholders(c.Certificate), checkPlaceholders(c.Key)); err != nil {
		return err
	}
	switch {
	case (c.Domain == "") == (c.Certificate == ""), (c.Certificate == "") != (c.Key == ""):
		return errSMTPTLS
	case c.Domain != "" && !certmagic.SubjectQualifiesForCert(c.Domain):
		return errSMTPDomain
	}
	return nil
}

func (a *SMTPAccount) check() error {
	if a.Username == "" || len(a.Username) > 128 || strings.ContainsFunc(a.Username, func(r rune) bool { return r <= ' ' }) {
		return errSMTPUser
	}
	for _, name := range a.Keys {
		if err := checkKeyName(name); err != nil {
			return err
		}
	}
	if strings.Contains(a.Password, "{") {
		return checkPlaceholders(a.Password)
	}
	return checkHash(a.Password)
}

// trusted returns the ranges of trusted_clients and reports whether clients on the
// same machine are trusted.
func (c *SMTP) trusted() (ranges []netip.Prefix, local bool, err error) {
	if slices.Contains(c.TrustedClients, noClients) {
		if len(c.TrustedClients) > 1 {
			return nil, false, errSMTPTrustedNone
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

// mailSettings are the settings of the mail server after defaults are applied,
// placeholders replaced and files read.
type mailSettings struct {
	listen, implicitTLS []caddy.NetworkAddress
	hostname            string
	domain              string           // Caddy manages its certificate; "" for none
	certificate         *tls.Certificate // nil for none
	accounts            map[string]*mailAccount
	ranges              []netip.Prefix // clients in them need no account
	local               bool           // clients on the same machine need no account
	maxSize             int64
	maxRecipients       int
	maxConnections      int
	timeout             time.Duration
}

// resolve returns the settings with placeholders replaced and files read.
func (c *SMTP) resolve() (*mailSettings, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &mailSettings{
		hostname: c.Hostname, maxSize: cmp.Or(c.MaxSize, defaultMailSize), maxRecipients: cmp.Or(c.MaxRecipients, defaultMailRecipients),
		maxConnections: cmp.Or(c.MaxConnections, defaultMailConnections), timeout: cmp.Or(time.Duration(c.Timeout), defaultMailTimeout),
	}
	for to, addresses := range map[*[]caddy.NetworkAddress][]string{&s.listen: c.Listen, &s.implicitTLS: c.ImplicitTLS} {
		for _, text := range addresses {
			a, err := parseMailAddress(text)
			if err != nil {
				return nil, err
			}
			*to = append(*to, a)
		}
	}
	var err error
	if s.ranges, s.local, err = c.trusted(); err != nil {
		return nil, prefixError("trusted_clients", err)
	}
	if c.TLS != nil {
		s.domain = c.TLS.Domain
		s.hostname = cmp.Or(s.hostname, s.domain)
		if s.certificate, err = c.TLS.load(); err != nil {
			return nil, prefixError("tls", err)
		}
	}
	if s.hostname == "" {
		if name, err := os.Hostname(); err == nil && mailHostname.MatchString(name) {
			s.hostname = name
		}
		s.hostname = cmp.Or(s.hostname, "localhost")
	}
	s.accounts, err = loadMailAccounts(c.Accounts)
	return s, prefixAuth(err)
}

func prefixAuth(err error) error {
	if err == nil {
		return nil
	}
	return prefixError("auth", err)
}

// load reads the certificate and its key. It returns nil if a domain is set instead.
func (c *SMTPTLS) load() (*tls.Certificate, error) {
	if c.Certificate == "" {
		return nil, nil
	}
	var pem [2][]byte
	for i, path := range []string{c.Certificate, c.Key} {
		path, err := resolvePlaceholders(path)
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

// addFiles adds to f the files that the settings name.
func (c *SMTP) addFiles(f *fileFingerprint) {
	for _, a := range c.Accounts {
		f.addPlaceholders(a.Password)
	}
	if c.TLS == nil || c.TLS.Certificate == "" {
		return
	}
	for _, path := range []string{c.TLS.Certificate, c.TLS.Key} {
		f.addPlaceholders(path)
		if path, err := resolvePlaceholders(path); err == nil {
			f.add(path)
		}
	}
}

// readSMTP reads the subdirective smtp of the global option.
func (b *settingsBlock) readSMTP(d *caddyfile.Dispenser, args []string) error {
	if b.app == nil {
		return d.Err("smtp belongs into the global option notify, because all sites share it: { notify { smtp :25 } }")
	}
	c := &SMTP{Listen: args}
	b.app.SMTP = c
	b.Caddyfile.record("smtp", d)
	start := *d
	for _, address := range args {
		if _, err := parseMailAddress(address); err != nil {
			return d.WrapErr(prefixError("smtp", err))
		}
	}
	err := readBlock(d, "smtp", options{
		"implicit_tls": {usage: "implicit_tls <address...>", min: 1, max: math.MaxInt, repeat: true, line: func(addresses []string) error {
			for _, address := range addresses {
				if _, err := parseMailAddress(address); err != nil {
					return err
				}
			}
			c.ImplicitTLS = append(c.ImplicitTLS, addresses...)
			return nil
		}},
		"hostname": {usage: "hostname <name>", min: 1, max: 1, line: func(args []string) error {
			if c.Hostname = args[0]; !mailHostname.MatchString(c.Hostname) {
				return errSMTPHostname
			}
			return nil
		}},
		"tls": {usage: "tls <domain>, or tls <certificate> <key>", min: 1, max: 2, at: func(d *caddyfile.Dispenser, args []string) error {
			c.TLS = &SMTPTLS{Domain: args[0]}
			if len(args) == 2 {
				c.TLS = &SMTPTLS{}
				for i, to := range []*string{&c.TLS.Certificate, &c.TLS.Key} {
					var err error
					if *to, err = importPath(args[i], d.File()); err != nil {
						return err
					}
				}
			}
			return c.TLS.check()
		}},
		"auth": {usage: "auth { … }", block: c.readAuth},
		"trusted_clients": {usage: "trusted_clients <cidr...>|private_ranges|none", min: 1, max: math.MaxInt, repeat: true, line: func(ranges []string) error {
			c.TrustedClients = append(c.TrustedClients, ranges...)
			_, _, err := c.trusted()
			return err
		}},
		"max_size":        {usage: "max_size <size>", min: 1, max: 1, line: byteSize(&c.MaxSize)},
		"max_recipients":  {usage: "max_recipients <n>", min: 1, max: 1, line: number(&c.MaxRecipients, 1, math.MaxUint16)},
		"max_connections": {usage: "max_connections <n>", min: 1, max: 1, line: number(&c.MaxConnections, 1, math.MaxInt32)},
		"timeout":         {usage: "timeout <duration>", min: 1, max: 1, line: positiveDuration(&c.Timeout)},
	})
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return start.WrapErr(prefixError("smtp", err))
	}
	return nil
}

// readAuth reads the accounts, one a line: the user name, the hash of the password,
// and the keys.
func (c *SMTP) readAuth(d *caddyfile.Dispenser, _ []string) error {
	start := *d
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		a := SMTPAccount{Username: d.Val()}
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.Err("the hash of the password is missing; write <user> <hash> [<keys...>]")
		}
		a.Password, a.Keys = args[0], args[1:]
		if err := a.check(); err != nil {
			return d.WrapErr(prefixError("auth", err))
		}
		c.Accounts = append(c.Accounts, a)
	}
	if len(c.Accounts) == 0 {
		return start.Err("auth needs a block with a line for each account: <user> <hash> [<keys...>]")
	}
	return nil
}
