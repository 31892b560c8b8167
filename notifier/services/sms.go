package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// sms is what gateways for text messages have in common: the telephone
// numbers that get the message, each by itself or many in one request.
type sms struct {
	targets []string
	toSelf  bool // without targets, the message goes to the number that it is sent from
	batch   bool
}

// describe binds the numbers to send to. number checks one and returns it in
// the form that the gateway wants.
func (x *sms) describe(s *notifier.Schema, number func(string) (string, error), prefixed ...notifier.Prefixed) *notifier.Param {
	s.Limits.Title, s.Limits.Body = 0, 160
	return s.Phones(&x.targets, "targets", "telephone numbers to send to", prefixed...).Alias("to").Normalize(number)
}

// describeBatch binds whether one request serves many numbers.
func (x *sms) describeBatch(s *notifier.Schema) {
	s.Bool(&x.batch, "batch", false, "send to many numbers in one request")
}

// Finish refuses a URL without anybody to send to.
func (x *sms) Finish(*notifier.Schema) error {
	if len(x.targets) > 0 || x.toSelf {
		return nil
	}
	return errors.New("there is no telephone number to send to; write one with its country code, as in 15551234567")
}

// or is the numbers to send to, or the sender's own where there are none.
func (x *sms) or(sender string) []string {
	if len(x.targets) == 0 {
		return []string{sender}
	}
	return x.targets
}

// each runs f for groups of numbers: with batch of up to most, else of one.
func (x *sms) each(ctx context.Context, c *notifier.Client, numbers []string, most int, f func(ctx context.Context, group []string) error) error {
	if !x.batch {
		most = 1
	}
	var groups []string
	for ; len(numbers) > most; numbers = numbers[most:] {
		groups = append(groups, strings.Join(numbers[:most], ","))
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

// smsAsWritten reads a number of least to 14 digits; a + before it is kept,
// and none is added.
func smsAsWritten(least int) func(string) (string, error) {
	return func(s string) (string, error) {
		s, err := notifier.Phone(s)
		if n := len(strings.TrimPrefix(s, "+")); err == nil && (n < least || n > 14) {
			err = errors.New("is not a telephone number with its country code")
		}
		return s, err
	}
}

// smsCode reads a sender that is a short code of 5 or 6 digits, or a number
// of 11 to 14, which gets a +.
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

// smsAsk sends a request and reads what the answer says into v, for gateways
// that may refuse with a status code that says they do not. An answer that is
// no JSON leaves v as it is.
func smsAsk(ctx context.Context, c *notifier.Client, q *notifier.Request, v any) error {
	answer, err := c.Do(ctx, q)
	if err != nil {
		return err
	}
	_ = answer.JSON(v)
	return nil
}

// smsRefused is what a gateway says for its refusal, in the first of texts
// that is not empty.
func smsRefused(texts ...string) error {
	for _, text := range texts {
		if text != "" {
			return errors.New("the service refused the message: " + text)
		}
	}
	return errors.New("the service refused the message")
}

// smsNorthAmerica reads a number of North America with or without the country code 1, which is
// left out.
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
