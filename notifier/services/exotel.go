package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[exotel]()

// exotel sends text messages through Exotel.
type exotel struct {
	sms
	sid, token, key, from, region, priority string
	unicode                                 bool
}

func (e *exotel) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Exotel", "https://developer.exotel.com/api/sms"
	s.Setup = "Account SID, API key and API token are in the Exotel dashboard " +
		"under API Settings; from_phone is an ExoPhone or an approved sender ID."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("india")
	s.URL("exotel://{sid}:{token}@{from_phone}[/{targets...}]")
	e.describe(s, exotelNumber)
	e.describeBatch(s)
	e.toSelf = true
	s.Limits.Body = 2000
	s.Secret(&e.sid, "sid", "SID of the account").Example("example1")
	s.Secret(&e.token, "token", "API token").Example("0123456789abcdef0123456789abcdef")
	s.Secret(&e.key, "apikey", "API key; default: the SID").Alias("key")
	s.String(&e.from, "from_phone", "", "number or sender ID to send from").Alias("from", "source").
		Normalize(exotelSender).Example("EXOTEL")
	s.Bool(&e.unicode, "unicode", true, "send characters outside the GSM alphabet")
	s.Choice(&e.region, "region", "us", []string{"us", "in"}, "region of the account")
	s.Choice(&e.priority, "priority", "normal", []string{"normal", "high"}, "priority of the message")
}

// exotelNumber returns a number of 9 to 14 digits without a +.
func exotelNumber(s string) (string, error) {
	s, err := smsAsWritten(9)(s)
	return strings.TrimPrefix(s, "+"), err
}

var (
	exotelSenderID = lazyregexp.New(`(?i)^[A-Z0-9][A-Z0-9.-]{2,15}$`)
	exotelDigits   = lazyregexp.New(`^[0-9]+$`)
)

// exotelSender returns a telephone number or a sender ID. A sender ID that consists
// of digits has six.
func exotelSender(s string) (string, error) {
	if number, err := exotelNumber(s); err == nil {
		return number, nil
	}
	if exotelSenderID.MatchString(s) && (len(s) == 6 || !exotelDigits.MatchString(s)) {
		return s, nil
	}
	return "", errors.New("is not a telephone number or a sender ID")
}

func (e *exotel) Finish(s *notifier.Schema) error {
	if _, err := exotelNumber(e.from); err != nil && len(e.targets) == 0 {
		return errors.New("a sender ID cannot receive messages; add a telephone number to send to")
	}
	return e.sms.Finish(s)
}

func (e *exotel) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	host, encoding, user := "api.exotel.com", "plain", e.sid
	if e.region == "in" {
		host = "api.in.exotel.com"
	}
	if e.unicode {
		encoding = "unicode"
	}
	if e.key != "" {
		user = e.key
	}
	return e.each(ctx, c, e.or(e.from), 100, func(ctx context.Context, numbers []string) error {
		form := notifier.Fields("From", e.from, "Body", m.Body, "EncodingType", encoding, "Priority", e.priority)
		form["To"] = numbers
		_, err := c.Do(ctx, &notifier.Request{
			URL:  "https://" + host + notifier.Path("v1", "Accounts", e.sid, "Sms", "send"),
			User: user, Password: e.token, Body: notifier.Form(form),
		})
		return err
	})
}
