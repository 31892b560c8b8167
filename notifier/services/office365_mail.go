package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// office365Mail is a message in the words of the Graph API.
type office365Mail struct {
	Subject      string               `json:"subject"`
	Body         office365Body        `json:"body"`
	From         *office365Recipient  `json:"from,omitempty"`
	ReplyTo      []office365Recipient `json:"replyTo,omitempty"`
	ToRecipients []office365Recipient `json:"toRecipients"`
	CC           []office365Recipient `json:"ccRecipients,omitempty"`
	BCC          []office365Recipient `json:"bccRecipients,omitempty"`
	Attachments  []office365File      `json:"attachments,omitempty"`
}

type office365Body struct {
	Type    string `json:"contentType"`
	Content string `json:"content"`
}

type office365Recipient struct {
	Mailbox office365Mailbox `json:"emailAddress"`
}

type office365Mailbox struct {
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`
}

type office365File struct {
	Kind    string `json:"@odata.type"`
	Name    string `json:"name"`
	Type    string `json:"contentType"`
	Content string `json:"contentBytes"`
}

func office365Recipients(list []emailAddress) (out []office365Recipient) {
	for _, m := range list {
		out = append(out, office365Recipient{office365Mailbox{m.address, m.name}})
	}
	return out
}

func office365Files(files []*notifier.Attachment) (out []office365File) {
	for _, a := range files {
		out = append(out, office365File{"#microsoft.graph.fileAttachment", a.Name, a.ContentType, notifier.Base64(a)})
	}
	return out
}

const office365API = "https://graph.microsoft.com/v1.0"

// office365Session is an access token, the address of the mailbox within the
// API, and whose mailbox it is, as far as that is known.
type office365Session struct {
	token, mailbox string
	owner          office365Mailbox
}

// sender is who the message is from, or nil for the service to fill in.
func (s office365Session) sender(name string) *office365Recipient {
	if s.owner.Address == "" {
		return nil
	}
	from := &office365Recipient{s.owner}
	if from.Mailbox.Name == "" {
		from.Mailbox.Name = name
	}
	return from
}

// signIn gets an access token (RFC 6749, sections 4.4 and 6) and, where the
// URL names the mailbox by its id, looks up its address.
func (o *office365) signIn(ctx context.Context, c *notifier.Client) (s office365Session, life time.Duration, err error) {
	tenant, form := o.tenant, notifier.Fields("client_id", o.id)
	if o.personal {
		if o.refresh == "" {
			o.refresh = o.secret[0]
		}
		tenant = "consumers"
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", o.refresh)
		form.Set("scope", "https://graph.microsoft.com/Mail.Send offline_access")
	} else {
		form.Set("grant_type", "client_credentials")
		form.Set("client_secret", o.secret[0])
		form.Set("scope", "https://graph.microsoft.com/.default")
	}
	var answer struct {
		Token   string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Life    int    `json:"expires_in"`
	}
	err = c.DoJSON(ctx, &notifier.Request{
		URL: "https://login.microsoftonline.com/" + url.PathEscape(tenant) + "/oauth2/v2.0/token", Body: notifier.Form(form),
	}, &answer)
	if err == nil && answer.Token == "" {
		err = errors.New("the service gave no token")
	}
	if err != nil {
		return s, 0, fmt.Errorf("signing in: %w", err)
	}
	if answer.Refresh != "" {
		o.refresh = answer.Refresh
	}
	s.token, s.mailbox = answer.Token, office365API+"/me"
	if !o.personal {
		s.mailbox = office365API + notifier.Path("users", o.from)
	}
	s.owner.Address = o.from
	if !o.byMail {
		if s.owner, err = s.lookUp(ctx, c); err != nil {
			c.Warn("Office 365: looking up the mailbox's address: %v", err)
		}
	}
	return s, time.Duration(answer.Life) * time.Second, nil
}

// lookUp finds the address and the name of a mailbox, as far as the app may
// know them; the service fills in the sender itself otherwise.
func (s office365Session) lookUp(ctx context.Context, c *notifier.Client) (m office365Mailbox, err error) {
	var user struct{ Mail, UserPrincipalName, DisplayName string }
	// The null is what the service has been seeing.
	if err = s.call(ctx, c, "GET", s.mailbox, notifier.JSON(nil), &user); err != nil {
		return m, err
	}
	if user.Mail == "" {
		user.Mail = user.UserPrincipalName
	}
	if _, ok := parseMailbox(user.Mail); !ok {
		return m, errors.New("it has none")
	}
	return office365Mailbox{user.Mail, user.DisplayName}, nil
}

func (s office365Session) call(ctx context.Context, c *notifier.Client, method, address string, body *notifier.Body, answer any) error {
	return c.DoJSON(ctx, &notifier.Request{
		Method: method, URL: address, Body: body, Header: map[string]string{"Authorization": "Bearer " + s.token},
	}, answer)
}
