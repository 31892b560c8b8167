package mailto

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[service]()

// service sends e-mail through a mail server, one mail to each target.
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
	pgppub, pgpprv string
	wkd            bool

	sender  mail.Address
	unnamed bool // the URL gives the sender's address without a name
	account account
	keys    pgpKeys
	pool    pool
}

func (m *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "E-Mail", "https://www.rfc-editor.org/rfc/rfc5321"
	s.URL("mailto[s]://[{user}[:{password}]@]{host}[:{port}][/{targets...}]")
	s.Format, s.Attachments = notifier.HTML, true
	s.Server(&m.Server)
	s.Param("user").Example("alice")
	s.Param("password").Example("app-password")
	addressList(s, &m.targets, "targets", "addresses to send to; the sender's if none is given").Alias("to").Example("you@example.com")
	s.String(&m.from, "from", "", "sender's address, name or both; user@host if not given").Example("me@example.com")
	s.String(&m.name, "name", "", "sender's name")
	addressList(s, &m.cc, "cc", "addresses that get a copy").DropInvalid()
	addressList(s, &m.bcc, "bcc", "addresses that get a copy unseen by others").DropInvalid()
	addressList(s, &m.reply, "reply", "addresses that answers go to").DropInvalid()
	s.Map(&m.header, "+", "header", "header field to add").Example("X-Origin=gateway")
	s.Bool(&m.inline, "inline", false, "show pictures within an HTML text")
	s.Host(&m.smtp, "smtp", "mail server; that of a known provider, or host, if not given")
	s.Choice(&m.mode, "mode", "", []string{modeStartTLS, modeTLS, modePlain}, "encryption; if not given, the provider's, or starttls for mailtos")
	s.Choice(&m.auth, "auth", "auto", []string{"auto", "plain", "login", "cram-md5", "xoauth2"}, "how to sign in; the password of xoauth2 is a token")
	m.describePGP(s)
}

// addressList binds a list of addresses.
func addressList(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return mail.List(s, v, name, doc).Normalize(checkAddress)
}

func (m *service) Finish(*notifier.Schema) error {
	if err := m.findSender(); err != nil {
		return err
	}
	for name := range m.header {
		if !fieldNamePattern.MatchString(name) {
			return errors.New("the name of a header field holds letters, digits and hyphens")
		}
		if reservedFields.MatchString(name) {
			return errors.New("the mail sets a header field itself that a parameter with + names; leave that out")
		}
	}
	var err error
	if m.account, err = m.findAccount(); err != nil {
		return err
	}
	m.pool.init()
	return m.readKeys()
}

var (
	fieldNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,70}$`)
	reservedFields   = regexp.MustCompile(`(?i)^(from|sender|to|cc|bcc|reply-to|subject|date|message-id|mime-version|content-.*|resent-.*|received|return-path)$`)
)

// findSender works out who the mail is from: user@host, unless from says an
// address; from may also be just a name.
func (m *service) findSender() error {
	local, domain, isAddress := strings.Cut(m.User, "@")
	known := m.provider()
	if !isPlaceholder(m.Host) && (known == nil || known.login != loginAddress || !isAddress) {
		domain = m.Host
	}
	if local = strings.TrimSpace(local); local == "" && isLocalhost(m.Host) {
		local = "root"
	}
	m.sender, _ = parseAddress(local + "@" + domain)
	if from, ok := parseAddress(m.from); ok {
		m.sender, m.unnamed = from, from.Name == "" && m.name == ""
	} else if m.from != "" {
		m.sender.Name = mail.OneLine(m.from)
	}
	if m.name != "" {
		m.sender.Name = mail.OneLine(m.name)
	}
	if m.sender.Address == "" {
		return errors.New("the sender's address is missing; write mailto://user@host, or give it as from=me@example.com")
	}
	return nil
}

// isPlaceholder says that the host stands for none, as in
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
