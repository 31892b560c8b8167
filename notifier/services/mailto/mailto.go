package mailto

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/net/publicsuffix"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[service]()

// service sends e-mail through an SMTP server, one mail to each target.
type service struct {
	notifier.Server
	targets        []string
	from, name     string
	cc, bcc, reply []string
	header         map[string]string
	inline         bool
	smtp           string
	mode, auth     string
	pgp            int
	pgppub, pgpprv notifier.FileParam
	wkd            bool
	chat           bool // the mails are messages of Delta Chat

	sender  mail.Address
	unnamed bool                 // from is an address without a name
	assumed bool                 // the sender's address is user@host
	keys    *pgpKeys             // nil if nothing is encrypted or signed
	pool    atomic.Pointer[pool] // nil until the first mail
}

func (m *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "E-Mail", "https://www.rfc-editor.org/rfc/rfc5321"
	s.Setup = "User and password are those of your mail program; providers with two-factor " +
		"login want an app password, which is created in the security settings of the account."
	s.Groups(notifier.GroupMail)
	s.NoWeb()
	s.Words("mail", "gmail", "google mail", "icloud", "apple mail", "yahoo", "gmx", "web.de",
		"fastmail", "proton", "zoho mail", "exchange", "smtp", "imap", "mail server")
	s.URL("mailto[s]://[{user}[:{password}]@]{host}[:{port}][/{targets...}]")
	s.Hints(
		notifier.Hint{
			Text: `(?<user>[^\s@:/?#]+)@(?<host>[\w-]+(?:\.[\w-]+)+)`, Is: "an e-mail address, to send from and to",
			Note:  "the password is that of the mail account; providers with two-factor login want an app password",
			Guess: true,
		},
	)
	s.Format = notifier.HTML
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	m.describe(s)
}

// describe binds the server, the addresses and the keys.
func (m *service) describe(s *notifier.Schema) {
	s.Attachments = true
	s.Server(&m.Server)
	s.Param("user").Example("alice")
	s.Param("password").Example("app-password")
	addressList(s, &m.targets, "targets", "addresses to send to; the sender's if none is given").Alias("to").Example("you@example.com")
	s.String(&m.from, "from", "", "sender's address, name or both; default: user@host").Example("me@example.com")
	s.String(&m.name, "name", "", "sender's name")
	addressList(s, &m.cc, "cc", "addresses that get a copy").DropInvalid()
	addressList(s, &m.bcc, "bcc", "addresses that get a blind copy").DropInvalid()
	addressList(s, &m.reply, "reply", "addresses that replies go to").DropInvalid()
	s.Map(&m.header, "+", "headers", "header field to add, or to set in place of the mail's own").Example("Auto-Submitted=auto-generated")
	s.Bool(&m.inline, "inline", false, "show pictures inside an HTML text")
	s.Host(&m.smtp, "smtp", "mail server; default: a known provider's, or host").Dialled()
	s.Choice(&m.mode, "mode", "", []string{modeStartTLS, modeTLS, modePlain}, "encryption; default: the provider's, or starttls for mailtos")
	s.Choice(&m.auth, "auth", "auto", []string{"auto", "plain", "login", "cram-md5", "xoauth2"},
		"how to sign in; for xoauth2 the password is a token")
	m.describePGP(s)
}

// addressList binds a list of addresses to a parameter.
func addressList(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return mail.List(s, v, name, doc).Normalize(checkAddress)
}

func (m *service) Finish(s *notifier.Schema) error {
	s.Recipients = mail.CountRecipients(m.targets, m.cc, m.bcc)
	if err := m.findSender(); err != nil {
		return err
	}
	for name := range m.header {
		if !fieldNamePattern.MatchString(name) {
			return errors.New("the name of a header field has letters, digits and hyphens only, as in +X-Origin=gateway")
		}
		if reservedFields.MatchString(name) {
			return errors.New("a parameter with + names a header field that cannot be set; leave it out, and give recipients of blind copies as bcc")
		}
	}
	return m.checkKeys()
}

var (
	fieldNamePattern = lazyregexp.New(`^[A-Za-z0-9_-]{1,70}$`)
	reservedFields   = lazyregexp.New(`(?i)^(bcc|mime-version|content-.*|resent-.*|received|return-path)$`)
)

// findSender sets the sender: user@host, or the address in from, which may also
// be a name alone.
func (m *service) findSender() error {
	local, domain, isAddress := strings.Cut(m.User, "@")
	known := m.provider()
	if !isPlaceholder(m.Host) && (known == nil || known.login != loginAddress || !isAddress) {
		domain = m.Host
	}
	if local = strings.TrimSpace(local); local == "" && isLocalhost(m.Host) {
		local = "root"
	}
	own, _ := parseAddress(local + "@" + domain)
	from, err := mail.ParseSender("from", m.from, parseAddress)
	if err != nil {
		return err
	}
	if m.sender = from; from.Address != "" {
		m.unnamed = from.Name == "" && m.name == ""
	} else {
		m.sender.Address, m.assumed = own.Address, true
	}
	if m.name != "" {
		m.sender.Name = mail.OneLine(m.name)
	}
	if m.sender.Address == "" {
		return errors.New("the sender's address is missing; write mailto://user@host, or give it as from=me@example.com")
	}
	return nil
}

// Warning implements [notifier.Warner]. A URL often has only the mail server, which is seldom the
// domain of an address.
func (m *service) Warning() string {
	_, domain, _ := strings.Cut(m.sender.Address, "@")
	domain = strings.ToLower(domain)
	of, err := publicsuffix.EffectiveTLDPlusOne(domain) // no host of one label has one
	if !m.assumed || err != nil || of == domain || !strings.EqualFold(domain, m.Host) {
		return ""
	}
	return "the sender is " + m.sender.Address + ", from the user and the server in the URL; " +
		"if it has another address, give it as from=me@example.com"
}

// isPlaceholder reports whether the URL has no real host, as in
// mailto://_?user=me@example.com.
func isPlaceholder(host string) bool { return strings.Contains(host, "_") }

func (m *service) Send(ctx context.Context, c *notifier.Client, msg *notifier.Message) error {
	to := parseAddresses(m.targets)
	if len(to) == 0 {
		to = []mail.Address{{Address: m.sender.Address}}
	}
	content := m.content(msg)
	var errs []error
	for i, target := range to {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		err := c.Steps.Once(target.Address, func() error { return m.sendTo(ctx, c, msg, target, content) })
		errs = append(errs, notifier.TargetError(i, len(to), err))
	}
	return errors.Join(errs...)
}
