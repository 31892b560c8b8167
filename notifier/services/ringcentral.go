package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[ringcentral]()

// ringcentral sends SMS through RingCentral, or MMS if the message has files.
type ringcentral struct {
	from, token, id, secret string
	mode, env               string
	targets                 []string
	session                 signin.Session[string]
}

func (r *ringcentral) Describe(s *notifier.Schema) {
	s.Name, s.Site = "RingCentral", "https://developers.ringcentral.com/guide/messaging/sms/sending-sms"
	s.Setup = "Create a REST API app with JWT auth flow and the permission SMS in the RingCentral developer " +
		"console, copy its client ID and client secret, and create a JWT credential for the user who sends."
	s.Groups(notifier.GroupSMS)
	s.Words("ringex")
	s.URL("ringc://{from_phone}:{token}@{client_id}/{secret}[/{targets...}]",
		"ringc://{token}@{client_id}/{secret}/{from_phone}[/{targets...}]")
	s.Way(2, "with the credentials first")
	s.Way(1, "with the number to send from first")
	s.Limits = markup.Limits{Body: 160}
	s.Attachments = true
	s.String(&r.from, "from_phone", "", "telephone number to send from").Alias("from", "source").
		Normalize(notifier.FullPhone).Example("15551234567")
	s.Secret(&r.token, "token", "JWT, or password of the account").Example("eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJub3RpZnkifQ.c2lnbmF0dXJl")
	s.Secret(&r.id, "client_id", "client ID of the app").Match(`^[a-z0-9_-]+$`).Example("AbCdEf0123456789GhIjKl")
	s.Secret(&r.secret, "secret", "client secret of the app").Match(`^[a-z0-9_-]+$`).Example("LkJiHg9876543210fEdCbA")
	s.Phones(&r.targets, "targets", "telephone numbers to send to; default: the sender's").
		Alias("to").Normalize(notifier.FullPhone).DropInvalid()
	s.Choice(&r.env, "env", "prod", []string{"prod", "sandbox"}, "environment of the app")
	s.Choice(&r.mode, "mode", "", []string{"basic", "jwt"}, "kind of token; default: jwt if it is longer than 60 characters")
}

func (r *ringcentral) url(path string) string {
	if r.env == "sandbox" {
		return "https://platform.devtest.ringcentral.com/restapi/" + path
	}
	return "https://platform.ringcentral.com/restapi/" + path
}

// signIn gets an access token (RFC 6749, section 4.3, and RFC 7523).
func (r *ringcentral) signIn(ctx context.Context, c *notifier.Client) (string, time.Duration, error) {
	grant := url.Values{
		"grant_type": {"password"}, "username": {"+" + r.from}, "password": {r.token},
		"access_token_ttl": {"3600"}, "refresh_token_ttl": {"604800"},
	}
	if r.mode == "jwt" || r.mode == "" && len(r.token) > 60 {
		grant = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {r.token}}
	}
	var answer struct {
		Token string `json:"access_token"`
		Life  int    `json:"expires_in"`
	}
	err := c.DoJSON(ctx, &notifier.Request{
		URL: r.url("oauth/token"), User: r.id, Password: r.secret, Body: notifier.Form(grant),
	}, &answer)
	if err == nil && answer.Token == "" {
		err = errors.New("the service returned no access token")
	}
	if err != nil {
		return "", 0, fmt.Errorf("signing in: %w", err)
	}
	return answer.Token, time.Duration(answer.Life) * time.Second, nil
}

func (r *ringcentral) Finish(*notifier.Schema) error {
	r.session.Saved = savedToken
	r.session.SignOut = func(ctx context.Context, c *notifier.Client, token string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL: r.url("oauth/revoke"), User: r.id, Password: r.secret, Body: notifier.Form(notifier.Fields("token", token)),
		})
		return err
	}
	return nil
}

func (r *ringcentral) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	targets := r.targets
	if len(targets) == 0 {
		targets = []string{r.from}
	}
	text, err := json.Marshal(m.Body)
	if err != nil {
		return err
	}
	signIn := func(ctx context.Context) (string, time.Duration, error) { return r.signIn(ctx, c) }
	return r.session.Do(ctx, c, signIn, func(token string) error {
		return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
			sms := fmt.Sprintf(`{"from": {"phoneNumber": "+%s"}, "to": [{"phoneNumber": "+%s"}], "text": %s}`, r.from, target, text)
			q := &notifier.Request{
				URL:    r.url("v1.0/account/~/extension/~/sms"),
				Header: map[string]string{"Authorization": "Bearer " + token},
				Body:   notifier.Bytes("application/json", []byte(sms)),
			}
			if len(m.Attachments) > 0 {
				parts := []notifier.FormPart{{Name: "json", Value: sms, ContentType: "application/json"}}
				for _, a := range m.Attachments {
					parts = append(parts, notifier.FormPart{Name: "attachment", File: a})
				}
				q.URL, q.Body = r.url("v1.0/account/~/extension/~/mms"), notifier.Multipart(parts...)
			}
			_, err := c.Do(ctx, q)
			return err
		})
	})
}
