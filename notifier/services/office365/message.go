package office365

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// message is a message in the words of the Graph API.
type message struct {
	Subject      string           `json:"subject"`
	Body         itemBody         `json:"body"`
	From         *recipient       `json:"from,omitempty"`
	ReplyTo      []recipient      `json:"replyTo,omitempty"`
	ToRecipients []recipient      `json:"toRecipients"`
	CC           []recipient      `json:"ccRecipients,omitempty"`
	BCC          []recipient      `json:"bccRecipients,omitempty"`
	Attachments  []fileAttachment `json:"attachments,omitempty"`
}

type itemBody struct {
	Type    string `json:"contentType"`
	Content string `json:"content"`
}

type recipient struct {
	Mailbox emailAddress `json:"emailAddress"`
}

type emailAddress struct {
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`
}

type fileAttachment struct {
	Kind    string `json:"@odata.type"`
	Name    string `json:"name"`
	Type    string `json:"contentType"`
	Content string `json:"contentBytes"`
}

func recipients(list []mail.Address) (out []recipient) {
	for _, m := range list {
		out = append(out, recipient{emailAddress{m.Address, m.Name}})
	}
	return out
}

func fileAttachments(files []*notifier.Attachment) (out []fileAttachment) {
	for _, a := range files {
		out = append(out, fileAttachment{"#microsoft.graph.fileAttachment", a.Name, a.ContentType, notifier.Base64(a)})
	}
	return out
}

const apiBase = "https://graph.microsoft.com/v1.0"

// session is an access token, the address of the mailbox within the
// API, and whose mailbox it is, as far as that is known.
type session struct {
	token, mailbox string
	owner          emailAddress
}

// sender is who the message is from, or nil for the service to fill in.
func (s session) sender(name string) *recipient {
	if s.owner.Address == "" {
		return nil
	}
	from := &recipient{s.owner}
	if from.Mailbox.Name == "" {
		from.Mailbox.Name = name
	}
	return from
}

// signIn gets an access token (RFC 6749, sections 4.4 and 6) and, where the
// URL names the mailbox by its id, looks up its address.
func (o *service) signIn(ctx context.Context, c *notifier.Client) (s session, life time.Duration, err error) {
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
	s.token, s.mailbox = answer.Token, apiBase+"/me"
	if !o.personal {
		s.mailbox = apiBase + notifier.Path("users", o.from)
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
func (s session) lookUp(ctx context.Context, c *notifier.Client) (m emailAddress, err error) {
	var user struct{ Mail, UserPrincipalName, DisplayName string }
	// The null is what the service has been seeing.
	if err = s.call(ctx, c, "GET", s.mailbox, notifier.JSON(nil), &user); err != nil {
		return m, err
	}
	if user.Mail == "" {
		user.Mail = user.UserPrincipalName
	}
	if _, ok := mail.ParseAddress(user.Mail); !ok {
		return m, errors.New("it has none")
	}
	return emailAddress{user.Mail, user.DisplayName}, nil
}

func (s session) call(ctx context.Context, c *notifier.Client, method, address string, body *notifier.Body, answer any) error {
	return c.DoJSON(ctx, &notifier.Request{
		Method: method, URL: address, Body: body, Header: map[string]string{"Authorization": "Bearer " + s.token},
	}, answer)
}
