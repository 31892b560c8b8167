package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[mobileMessage]()

// mobileMessage sends text messages through Mobile Message, to Australia.
type mobileMessage struct {
	sms
	user, password, sender, ref string
	unicode                     bool
	maxParts                    int
}

const (
	mobileMessageBatch = 10000 // max number of messages of a request

	// The max characters of each part of a message, which is sent in several parts.
	mobileMessageGSM     = 153
	mobileMessageUnicode = 67
)

func (x *mobileMessage) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Mobile Message", "https://mobilemessage.com.au/api-documentation/"
	s.Setup = "API user name and password are in the settings of the Mobile Message account; " +
		"sender is a number or name that is registered there."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("australia")
	s.URL("mobilemessage|mobilemsg://{user}:{password}@{sender|targets}[/{targets...}]")
	x.describe(s, mobileMessagePhone).Example("61412345678")
	s.String(&x.user, "user", "", "API user name").Example("alice")
	s.Secret(&x.password, "password", "API password").Alias("pass").Example("pa55word")
	s.String(&x.sender, "sender", "", "number or name to send from").Alias("from").
		Match(`^\+?[a-z0-9][a-z0-9 ()_.-]{1,19}$`).Normalize(mobileMessageSender).Example("ALERTS")
	s.Bool(&x.unicode, "unicode", false, "send letters outside the alphabet of text messages; a part is then shorter")
	s.Int(&x.maxParts, "max_parts", 10, "the most parts of a message").Range(1, 99)
	s.String(&x.ref, "ref", "", "reference of your own, which reports have").Example("nightly")
	s.Bool(&x.batch, "batch", true, "send to many numbers in one request")
}

var mobileMessageNumber = lazyregexp.New(`^\+?[0-9 ().-]+$`)

// mobileMessageSender writes a number in digits only, and leaves a name as it is.
func mobileMessageSender(s string) (string, error) {
	if !mobileMessageNumber.MatchString(s) {
		return s, nil
	}
	s, err := notifier.Phone(s)
	return strings.TrimPrefix(s, "+"), err
}

// mobileMessagePhone reads a mobile number of Australia with or without its country
// code, and writes it with the country code.
func mobileMessagePhone(s string) (string, error) {
	s, err := notifier.Phone(s)
	if err != nil {
		return "", err
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s, "+"), "61")
	if s = strings.TrimPrefix(s, "0"); len(s) != 9 || s[0] != '4' {
		return "", errors.New("is not a mobile number of Australia, as in 0412345678 or 61412345678")
	}
	return "61" + s, nil
}

func (x *mobileMessage) Finish(s *notifier.Schema) error {
	if s.Limits.Body = x.maxParts * mobileMessageGSM; x.unicode {
		s.Limits.Body = x.maxParts * mobileMessageUnicode
	}
	return x.sms.Finish(s)
}

func (x *mobileMessage) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return x.each(ctx, c, x.targets, mobileMessageBatch, func(ctx context.Context, numbers []string) error {
		return x.send(ctx, c, m, slices.DeleteFunc(numbers, c.Steps.Sent))
	})
}

// send sends the message to numbers that do not have it yet.
func (x *mobileMessage) send(ctx context.Context, c *notifier.Client, m *notifier.Message, numbers []string) error {
	messages := make([]map[string]string, len(numbers))
	for i, number := range numbers {
		messages[i] = map[string]string{"to": number, "message": m.Body, "sender": x.sender}
		if x.ref != "" {
			messages[i]["custom_ref"] = x.ref
		}
	}
	// A retry has the key of the first attempt: the service, which may have the
	// request already, does not send twice. Another set of numbers is another request.
	key, err := notifier.OnceValue(c.Steps, "key "+strings.Join(numbers, ","), func() (string, error) { return uuid.NewString(), nil })
	if err != nil {
		return err
	}
	answer, err := c.Do(ctx, &notifier.Request{
		URL: "https://api.mobilemessage.com.au/v1/messages", Header: map[string]string{"Idempotency-Key": key},
		User: x.user, Password: x.password,
		Body:   notifier.JSON(map[string]any{"messages": messages, "enable_unicode": x.unicode, "max_parts": x.maxParts}),
		Accept: func(code int) bool { return code == http.StatusOK },
	})
	if err != nil {
		return err
	}
	return mobileMessageResults(c, answer, numbers)
}

// mobileMessageResults returns an error unless the answer says of each number that it
// gets the message. It marks the numbers that do.
func mobileMessageResults(c *notifier.Client, resp *notifier.Response, numbers []string) error {
	var answer struct {
		Status  string
		Results []struct{ To, Status, Error string }
	}
	if err := resp.JSON(&answer); err != nil {
		return err
	}
	if answer.Status != "complete" || len(answer.Results) != len(numbers) {
		return fmt.Errorf("the service reports %d results for %d numbers", len(answer.Results), len(numbers))
	}
	var errs []error
	for i, r := range answer.Results {
		switch {
		case r.Status != "success":
			errs = append(errs, notifier.TargetError(i, len(numbers), smsRefused(r.Error)))
		case r.To == numbers[i]:
			c.Steps.MarkSent(numbers[i])
		}
	}
	return errors.Join(errs...)
}
