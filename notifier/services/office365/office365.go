package office365

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[service]()

// service sends e-mail from a mailbox at Microsoft, through its Graph API.
type service struct {
	user, source               string
	tenant, id                 string
	secret                     []string
	targets, cc, bcc, replyTo  []string
	mode                       string
	saveSent, personal, byMail bool
	from                       string // the mailbox: its address, or its id in the directory
	refresh                    string // the last refresh token of a personal mailbox
	session                    signin.Session[session]
}

func (o *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Office 365", "https://learn.microsoft.com/graph/api/user-sendmail"
	s.URL("azure|o365://[{user}@]{source}[/{tenant}]/{client_id}/{secret...}[/{targets...}]")
	s.Format, s.Attachments = notifier.HTML, true
	s.String(&o.user, "user", "", "the mailbox's address before the @").Example("alerts")
	s.String(&o.source, "source", "", "the mailbox's domain, or its whole address or id").Alias("from").Example("example.com")
	s.Secret(&o.tenant, "tenant", "directory (tenant) ID, which only organizations have").Example("c7d3f0a2-5b1e-4e0f-9a57-2f6f1d0b8e11")
	s.Secret(&o.id, "client_id", "application (client) ID").Alias("oauth_id").Example("1f0e8a34-9c2d-4b7a-8d15-7a3e5c9b6f42")
	s.Path(&o.secret, "secret", "client secret; of a personal mailbox the refresh token").Alias("oauth_secret").Secret().Example("Q8~abcDEF123ghiJKL456mnoPQR789stuVWX")
	mail.List(s, &o.targets, "targets", "addresses to send to; the mailbox's own if none").Alias("to").Example("you@example.com")
	mail.Copies(s, &o.cc, "cc", "addresses that get a copy")
	mail.Copies(s, &o.bcc, "bcc", "addresses that get a copy unseen by others")
	mail.Copies(s, &o.replyTo, "reply_to", "addresses that answers go to")
	s.Choice(&o.mode, "mode", "", []string{"org", "personal"}, "whose mailbox it is; org unless the domain is a personal one").Lenient()
	s.Bool(&o.saveSent, "savesent", true, "keep the message among those sent")
}

// personalDomains matches the domains of mailboxes that belong to no
// organization.
var personalDomains = regexp.MustCompile(`(?i)@((outlook|hotmail|live)\.(com|(com?\.)?[a-z]{2})|msn\.com)$`)

// idPattern matches the IDs of tenants and applications, and the domain that
// stands for a tenant.
var idPattern = regexp.MustCompile(`(?i)^([a-z0-9-]+\.)*[a-z0-9-]+$`)

// Finish sorts out what the grammar cannot: which mode it is, and where the
// secret ends, since it may hold slashes.
func (o *service) Finish(*notifier.Schema) error {
	o.from = o.source
	if o.user != "" && !strings.Contains(o.source, "@") {
		o.from = o.user + "@" + o.source
	}
	mailbox, byMail := mail.ParseAddress(o.from)
	if byMail {
		o.from = mailbox.Address
	}
	o.byMail = byMail
	o.personal = o.mode == "personal" || o.mode == "" && personalDomains.MatchString(o.from)
	switch {
	case o.personal && !byMail:
		return errors.New("a personal mailbox is named by its e-mail address")
	case o.personal && o.tenant != "":
		// There is no tenant, so that everything stands a place earlier.
		o.secret, o.id, o.tenant = append([]string{o.id}, o.secret...), o.tenant, ""
	case !o.personal && o.tenant == "":
		return errors.New("the tenant is missing; write it before the application's ID")
	case !o.personal && !idPattern.MatchString(o.tenant):
		return errors.New("the tenant is malformed; it is an ID or a domain of the organization")
	}
	if !idPattern.MatchString(o.id) {
		return errors.New("the application's ID is malformed; it has letters, digits and hyphens")
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
		return errors.New("the secret is missing; write it behind the application's ID")
	}
	o.secret = []string{strings.Join(o.secret, "/")}
	slices.Sort(o.targets)
	o.targets = slices.Compact(o.targets)
	if len(o.targets) == 0 && !byMail {
		return errors.New("there is nobody to send to; write an e-mail address at the end")
	}
	return nil
}

func (o *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (session, time.Duration, error) { return o.signIn(ctx, c) }
	return o.session.Do(ctx, c, signIn, func(s session) error {
		targets := o.targets
		if len(targets) == 0 {
			targets = []string{o.from}
		}
		return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
			to := mail.ParseList([]string{target})
			bcc := mail.Without(mail.ParseList(o.bcc), to)
			mail := message{
				Subject:      m.Title,
				Body:         itemBody{"Text", m.Body},
				From:         s.sender(m.Identity.Name),
				ReplyTo:      recipients(mail.ParseList(o.replyTo)),
				ToRecipients: recipients(to),
				CC:           recipients(mail.Without(mail.Without(mail.ParseList(o.cc), mail.ParseList(o.bcc)), to)),
				BCC:          recipients(bcc),
			}
			if m.Format == notifier.HTML {
				mail.Body.Type = "HTML"
			}
			if needsUpload(m.Attachments) {
				return o.sendLarge(ctx, c, s, mail, target, m.Attachments)
			}
			mail.Attachments = fileAttachments(m.Attachments)
			save := "false"
			if o.saveSent {
				save = "true"
			}
			return s.call(ctx, c, "POST", s.mailbox+"/sendMail",
				notifier.JSON(map[string]any{"message": mail, "saveToSentItems": save}, m.Attachments...), nil)
		})
	})
}
