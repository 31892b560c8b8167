package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// sms has the parameters that the services for text messages share: the telephone
// numbers to send to, and whether one request sends to many.
type sms struct {
	targets []string
	toSelf  bool // without targets, the message goes to the sender
	batch   bool
}

// describe binds the numbers to send to. number checks a number and returns it in
// the form that the service expects.
func (x *sms) describe(s *notifier.Schema, number func(string) (string, error), prefixed ...notifier.Prefixed) *notifier.Param {
	s.Limits.Title, s.Limits.Body = 0, 160
	return s.Phones(&x.targets, "targets", "telephone numbers to send to", prefixed...).Alias("to").Normalize(number)
}

// describeBatch binds the parameter batch.
func (x *sms) describeBatch(s *notifier.Schema) {
	s.Bool(&x.batch, "batch", false, "send to many numbers in one request")
}

// Finish returns an error if there is no number to send to.
func (x *sms) Finish(*notifier.Schema) error {
	if len(x.targets) > 0 || x.toSelf {
		return nil
	}
	return errors.New("the URL has no telephone number to send to; write one with its country code, as in 15551234567")
}

// or returns the numbers to send to, or the sender's if there are none.
func (x *sms) or(sender string) []string {
	if len(x.targets) == 0 {
		return []string{sender}
	}
	return x.targets
}

// each calls f for groups of numbers: with batch of up to size, else of one.
func (x *sms) each(
	ctx context.Context, c *notifier.Client, numbers []string,
	size int, f func(ctx context.Context, group []string) error,
) error {
	if !x.batch {
		size = 1
	}
	var groups []string
	for ; len(numbers) > size; numbers = numbers[size:] {
		groups = append(groups, strings.Join(numbers[:size], ","))
	}
	if len(numbers) > 0 {
		groups = append(groups, strings.Join(numbers, ","))
	}
	return c.Steps.Each(ctx, groups, func(ctx context.Context, group string) error {
		return f(ctx, strings.Split(group, ","))
	})
}

// smsSender binds the number that messages are sent from.
func smsSender(s *notifier.Schema, v *string, name string) *notifier.Param {
	return s.String(v, name, "", "telephone number to send from").Normalize(notifier.FullPhone).Example("15557654321")
}

// smsPlus reads a number with its country code and writes it with a +.
func smsPlus(s string) (string, error) {
	s, err := notifier.FullPhone(s)
	return "+" + s, err
}

// smsAsWritten returns a reader of numbers of minDigits to 14 digits. It keeps a
// leading + and adds none.
func smsAsWritten(minDigits int) func(string) (string, error) {
	return func(s string) (string, error) {
		s, err := notifier.Phone(s)
		if n := len(strings.TrimPrefix(s, "+")); err == nil && (n < minDigits || n > 14) {
			err = errors.New("is not a telephone number with its country code")
		}
		return s, err
	}
}

// smsCode reads a sender: a short code of 5 or 6 digits, or a number of 11 to 14
// digits, which it writes with a +.
func smsCode(s string) (string, error) {
	s, err := notifier.Phone(s)
	if err != nil {
		return "", err
	}
	s = strings.TrimPrefix(s, "+")
	switch n := len(s); {
	case n == 5 || n == 6:
		return s, nil
	case n >= 11 && n <= 14:
		return "+" + s, nil
	}
	return "", errors.New("is not a short code or a telephone number with its country code")
}

// smsAsk sends a request and decodes the JSON of the answer into v. It is for
// services that report errors in answers with status 200. An answer that is not JSON
// leaves v unchanged.
func smsAsk(ctx context.Context, c *notifier.Client, q *notifier.Request, v any) error {
	answer, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	_ = answer.JSON(v)
	return nil
}

// smsRefused returns the error for a message that the service refused. Its reason is
// the first of texts that is not empty. See [textError].
func smsRefused(texts ...string) error {
	for _, text := range texts {
		if text != "" {
			return textError("the service refused the message: " + text)
		}
	}
	return errors.New("the service refused the message")
}

// smsNorthAmerica reads a number of North America with or without the country code
// 1, and writes it without.
func smsNorthAmerica(s string) (string, error) {
	s, err := notifier.FullPhone(s)
	if err == nil && len(s) == 11 && s[0] == '1' {
		s = s[1:]
	}
	if err == nil && len(s) != 10 {
		err = errors.New("is not a telephone number of North America")
	}
	return s, err
}
