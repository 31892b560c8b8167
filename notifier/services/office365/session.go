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

const apiBase = "https://graph.microsoft.com/v1.0"

// session is an access token for a mailbox.
type session struct {
	token   string
	mailbox string       // URL of the mailbox
	owner   emailAddress // empty if unknown
}

// sender returns the sender of a message, with name if the owner has none. It
// returns nil if the owner is unknown; then the API fills it in.
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

// signIn gets an access token (RFC 6749, sections 4.4 and 6). If the URL has the
// id of the mailbox, it looks up the address.
func (o *service) signIn(ctx context.Context, c *notifier.Client) (s session, life time.Duration, err error) {
	if !o.personal || o.refresh != "" {
		return o.exchange(ctx, c)
	}
	// A refresh token replaces the one before, so the newest may be one that an
	// earlier process has got.
	if c.LoadState(ctx, savedRefresh, &o.refresh) && o.refresh != o.secret[0] {
		s, life, err = o.exchange(ctx, c)
		if len(notifier.Statuses(err)) == 0 {
			if err != nil {
				o.refresh = ""
			}
			return s, life, err
		}
	}
	o.refresh = o.secret[0]
	if s, life, err = o.exchange(ctx, c); err != nil {
		o.refresh = ""
	}
	return s, life, err
}

// savedRefresh is the name of the refresh token that is kept over a restart.
const savedRefresh = "refresh token"

// exchange gets an access token for the refresh token or the client secret.
func (o *service) exchange(ctx context.Context, c *notifier.Client) (s session, life time.Duration, err error) {
	tenant, form := o.tenant, notifier.Fields("client_id", o.id)
	if o.personal {
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
		err = errors.New("the service returned no access token")
	}
	if err != nil {
		return s, 0, fmt.Errorf("signing in: %w", err)
	}
	if o.personal && answer.Refresh != "" && answer.Refresh != o.refresh {
		o.refresh = answer.Refresh
		c.SaveState(ctx, savedRefresh, o.refresh)
	}
	from, byMail := o.mailbox()
	s.token, s.mailbox = answer.Token, apiBase+"/me"
	if !o.personal {
		s.mailbox = apiBase + notifier.Path("users", from)
	}
	s.owner.Address = from
	if !byMail {
		if s.owner, err = s.lookUp(ctx, c); err != nil {
			c.Warn("Office 365: looking up the address of the mailbox: %v", err)
		}
	}
	return s, time.Duration(answer.Life) * time.Second, nil
}

// lookUp returns the address and name of the mailbox. The app may lack the
// permission for that.
func (s session) lookUp(ctx context.Context, c *notifier.Client) (m emailAddress, err error) {
	var user struct{ Mail, UserPrincipalName, DisplayName string }
	// The body is null, for compatibility.
	if err = s.call(ctx, c, "GET", s.mailbox, notifier.JSON(nil), &user); err != nil {
		return m, err
	}
	if user.Mail == "" {
		user.Mail = user.UserPrincipalName
	}
	if _, ok := mail.ParseAddress(user.Mail); !ok {
		return m, errors.New("the mailbox has none")
	}
	return emailAddress{user.Mail, user.DisplayName}, nil
}

// call sends a request to the API and decodes the answer.
func (s session) call(ctx context.Context, c *notifier.Client, method, address string, body *notifier.Body, answer any) error {
	return c.DoJSON(ctx, &notifier.Request{
		Method: method, URL: address, Body: body, Header: map[string]string{"Authorization": "Bearer " + s.token},
	}, answer)
}
