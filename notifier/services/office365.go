package services

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[office365]()

// office365 sends e-mail from a mailbox at Microsoft, through its Graph API.
type office365 struct {
	user, source               string
	tenant, id                 string
	secret                     []string
	targets, cc, bcc, replyTo  []string
	mode                       string
	saveSent, personal, byMail bool
	from                       string // the mailbox: its address, or its id in the directory
	refresh                    string // the last refresh token of a personal mailbox
	session                    session[office365Session]
	to                         *notifier.Param
}

func (o *office365) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Office 365", "https://learn.microsoft.com/graph/api/user-sendmail"
	s.URL("azure|o365://[{user}@]{source}[/{tenant}]/{client_id}/{secret...}[/{targets...}]")
	s.Format, s.Attachments = notifier.HTML, true
	s.String(&o.user, "user", "", "the mailbox's address before the @")
	s.String(&o.source, "source", "", "the mailbox's domain, or its whole address or id").Alias("from").Example("example.com")
	s.Secret(&o.tenant, "tenant", "directory (tenant) ID, which only organizations have")
	s.Secret(&o.id, "client_id", "application (client) ID").Alias("oauth_id").Example("client-id")
	s.Path(&o.secret, "secret", "client secret; of a personal mailbox the refresh token").Alias("oauth_secret").Secret()
	o.to = mailList(s, &o.targets, "targets", "addresses to send to; the mailbox's own if none").Alias("to").Example("you@example.com")
	mailList(s, &o.cc, "cc", "addresses that get a copy")
	mailList(s, &o.bcc, "bcc", "addresses that get a copy unseen by others")
	mailList(s, &o.replyTo, "reply_to", "addresses that answers go to")
	s.Choice(&o.mode, "mode", "", []string{"org", "personal"}, "whose mailbox it is; org unless the domain is a personal one").Lenient()
	s.Bool(&o.saveSent, "savesent", true, "keep the message among those sent")
}

// office365Personal matches the domains of mailboxes that belong to no
// organization.
var office365Personal = regexp.MustCompile(`(?i)@((outlook|hotmail|live)\.(com|(com?\.)?[a-z]{2})|msn\.com)$`)

// office365ID matches the IDs of tenants and applications, and the domain that
// stands for a tenant.
var office365ID = regexp.MustCompile(`(?i)^([a-z0-9-]+\.)*[a-z0-9-]+$`)

// Finish sorts out what the grammar cannot: which mode it is, and where the
// secret ends, since it may hold slashes.
func (o *office365) Finish(*notifier.Schema) error {
	o.from = o.source
	if o.user != "" && !strings.Contains(o.source, "@") {
		o.from = o.user + "@" + o.source
	}
	mailbox, byMail := parseMailbox(o.from)
	if byMail {
		o.from = mailbox.address
	}
	o.byMail = byMail
	o.personal = o.mode == "personal" || o.mode == "" && office365Personal.MatchString(o.from)
	switch {
	case o.personal && !byMail:
		return errors.New("a personal mailbox is named by its e-mail address")
	case o.personal && o.tenant != "":
		// There is no tenant, so that everything stands a place earlier.
		o.secret, o.id, o.tenant = append([]string{o.id}, o.secret...), o.tenant, ""
	case !o.personal && o.tenant == "":
		return errors.New("the tenant is missing; write it before the application's ID")
	case !o.personal && !office365ID.MatchString(o.tenant):
		return errors.New("the tenant is malformed; it is an ID or a domain of the organization")
	}
	if !office365ID.MatchString(o.id) {
		return errors.New("the application's ID is malformed; it has letters, digits and hyphens")
	}
	for len(o.secret) > 0 {
		last, ok := parseMailbox(o.secret[len(o.secret)-1])
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
	if len(o.targets) == 0 && (!byMail || o.to.Dropped()) {
		return errors.New("there is nobody to send to; write an e-mail address at the end")
	}
	return nil
}

func (o *office365) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (office365Session, time.Duration, error) { return o.signIn(ctx, c) }
	return o.session.with(ctx, c, signIn, func(s office365Session) error {
		targets := o.targets
		if len(targets) == 0 {
			targets = []string{o.from}
		}
		return c.Each(ctx, targets, func(ctx context.Context, target string) error {
			to := mailboxes([]string{target})
			bcc := mailWithout(mailboxes(o.bcc), to)
			mail := office365Mail{
				Subject:      m.Title,
				Body:         office365Body{"Text", m.Body},
				From:         s.sender(m.Identity.Name),
				ReplyTo:      office365Recipients(mailboxes(o.replyTo)),
				ToRecipients: office365Recipients(to),
				CC:           office365Recipients(mailWithout(mailWithout(mailboxes(o.cc), mailboxes(o.bcc)), to)),
				BCC:          office365Recipients(bcc),
			}
			if m.Format == notifier.HTML {
				mail.Body.Type = "HTML"
			}
			if office365Large(m.Attachments) {
				return o.sendLarge(ctx, c, s, mail, target, m.Attachments)
			}
			mail.Attachments = office365Files(m.Attachments)
			save := "false"
			if o.saveSent {
				save = "true"
			}
			return s.call(ctx, c, "POST", s.mailbox+"/sendMail",
				notifier.JSON(map[string]any{"message": mail, "saveToSentItems": save}, m.Attachments...), nil)
		})
	})
}
