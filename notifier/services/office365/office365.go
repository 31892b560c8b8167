package office365

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[service]()

// service sends e-mail from a mailbox at Microsoft, through the Graph API.
type service struct {
	user, source              string
	tenant, id                string
	secret                    []string
	targets, cc, bcc, replyTo []string
	mode                      string
	saveSent, personal        bool
	refresh                   string // latest refresh token of a personal mailbox
	session                   signin.Session[session]
}

func (o *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Office 365", "https://learn.microsoft.com/graph/api/user-sendmail"
	s.Setup = "Register an application in Microsoft Entra ID, grant it the application permission Mail.Send, " +
		"and create a client secret; its overview shows the IDs of tenant and client."
	s.Groups(notifier.GroupMail)
	s.Words("microsoft 365", "m365", "outlook", "hotmail", "exchange", "exchange online", "microsoft graph")
	s.URL("azure|o365://[{user}@]{source}[/{tenant}]/{client_id}/{secret...}[/{targets...}]")
	s.Format, s.Attachments = notifier.HTML, true
	s.String(&o.user, "user", "", "address of the mailbox up to the @").Example("alerts")
	s.String(&o.source, "source", "", "domain, address or id of the mailbox").Alias("from").Example("example.com")
	s.Secret(&o.tenant, "tenant", "directory (tenant) ID; organizations only").Example("c7d3f0a2-5b1e-4e0f-9a57-2f6f1d0b8e11")
	s.Secret(&o.id, "client_id", "application (client) ID").Alias("oauth_id").Example("1f0e8a34-9c2d-4b7a-8d15-7a3e5c9b6f42")
	s.Path(&o.secret, "secret", "client secret; for a personal mailbox the refresh token").
		Alias("oauth_secret").Secret().Example("Q8~abcDEF123ghiJKL456mnoPQR789stuVWX")
	mail.List(s, &o.targets, "targets", "addresses to send to; default: the mailbox's").Alias("to").Example("you@example.com")
	mail.Copies(s, &o.cc, "cc", "addresses that get a copy")
	mail.Copies(s, &o.bcc, "bcc", "addresses that get a blind copy")
	mail.Copies(s, &o.replyTo, "reply_to", "addresses for replies")
	s.Choice(&o.mode, "mode", "", []string{"org", "personal"},
		"kind of mailbox; default: personal at outlook.com or hotmail, else org").Lenient()
	s.Bool(&o.saveSent, "savesent", true, "save the message in Sent Items")
}

// Rewrite makes each + in the lists of addresses in the query a space: URLs in
// use have names there, as in reply_to=Jo+Doe<jo@example.com>. A + in an address
// is written %2B.
func (o *service) Rewrite(url string) string {
	return addressQuery.ReplaceAllStringFunc(url, func(s string) string { return strings.ReplaceAll(s, "+", "%20") })
}

var addressQuery = lazyregexp.New(`(?i)[?&;](to|targets|cc|bcc|reply_to)=[^&;]*`)

// personalDomains matches addresses of personal mailboxes.
var personalDomains = lazyregexp.New(`(?i)@((outlook|hotmail|live)\.(com|(com?\.)?[a-z]{2})|msn\.com)$`)

// idPattern matches the ID of a tenant or application, and the domain of a tenant.
var idPattern = lazyregexp.New(`(?i)^([a-z0-9-]+\.)*[a-z0-9-]+$`)

// Finish does what the grammar of the URL cannot: it sets the mode, and finds the
// end of the secret, which may contain slashes.
func (o *service) Finish(s *notifier.Schema) error {
	from, byMail := o.mailbox()
	if !byMail && strings.ContainsAny(from, "@<>") {
		return errors.New("source (or from) is no e-mail address that can be read; write it as me@example.com")
	}
	o.personal = o.mode == "personal" || o.mode == "" && personalDomains.MatchString(from)
	switch {
	case o.personal && !byMail:
		return errors.New("mode=personal needs the e-mail address of the mailbox")
	case o.personal && o.tenant != "":
		// Without a tenant, each part of the path is one place earlier.
		o.secret, o.id, o.tenant = append([]string{o.id}, o.secret...), o.tenant, ""
	case !o.personal && o.tenant == "":
		return errors.New("the tenant is missing; write it before the ID of the application")
	case !o.personal && !idPattern.MatchString(o.tenant):
		return errors.New("the tenant is malformed; write the ID or a domain of the organization")
	}
	if !idPattern.MatchString(o.id) {
		return errors.New("the ID of the application is malformed; it has letters, digits and hyphens")
	}
	for len(o.secret) > 0 {
		last, ok := mail.ParseAddress(o.secret[len(o.secret)-1])
		if !ok {
			break
		}
		o.secret = o.secret[:len(o.secret)-1]
		o.targets = append(o.targets, last.String())
	}
	if len(o.secret) == 0 {
		return errors.New("the secret is missing; write it after the ID of the application")
	}
	o.secret = append(o.secret[:0], strings.Join(o.secret, "/"))
	slices.Sort(o.targets)
	o.targets = slices.Compact(o.targets)
	s.Recipients = mail.CountRecipients(o.targets, o.cc, o.bcc)
	if len(o.targets) == 0 && !byMail {
		return errors.New("the URL has no targets; write an e-mail address at the end")
	}
	return nil
}

func (o *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (session, time.Duration, error) { return o.signIn(ctx, c) }
	return o.session.Do(ctx, c, signIn, func(s session) error {
		targets := o.targets
		if len(targets) == 0 {
			from, _ := o.mailbox()
			targets = []string{from}
		}
		return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
			rcpt := mail.NewRecipients(mail.ParseList([]string{target}), mail.ParseList(o.cc), mail.ParseList(o.bcc))
			msg := message{
				Subject:      m.Title,
				Body:         itemBody{"Text", m.Body},
				From:         s.sender(m.Identity.Name),
				ReplyTo:      recipients(mail.ParseList(o.replyTo)),
				ToRecipients: recipients(rcpt.To),
				CC:           recipients(rcpt.CC),
				BCC:          recipients(rcpt.BCC),
			}
			if m.Format == notifier.HTML {
				msg.Body.Type = "HTML"
			}
			if needsUpload(m.Attachments) {
				return o.sendDraft(ctx, c, s, msg, target, m.Attachments)
			}
			msg.Attachments = fileAttachments(m.Attachments)
			save := "false"
			if o.saveSent {
				save = "true"
			}
			return s.call(ctx, c, "POST", s.mailbox+"/sendMail",
				notifier.JSON(map[string]any{"message": msg, "saveToSentItems": save}, m.Attachments...), nil)
		})
	})
}

// mailbox returns the address of the mailbox, or its id in the directory.
func (o *service) mailbox() (from string, byMail bool) {
	from = o.source
	if o.user != "" && !strings.Contains(o.source, "@") {
		from = o.user + "@" + o.source
	}
	if mailbox, ok := mail.ParseAddress(from); ok {
		return mailbox.Address, true
	}
	return from, false
}
