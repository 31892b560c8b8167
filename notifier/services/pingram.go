package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[pingram]()

// pingram notifies people through Pingram over one or more channels, with the
// message itself or with a template stored there.
type pingram struct {
	key, kind  string
	targets    []string
	recipients []pingramRecipient // from targets
	channels   []string
	via        []string // channels, or the channel of the first target that implies one
	region     string
	mode       string
	template   bool
	from       string
	sent       mail.Address // from
	left       int          // targets that are none
	cc, bcc    []string
	reply      []string
	tokens     map[string]string
}

// pingramRecipient is a recipient, as the API has it.
type pingramRecipient struct {
	Email  string `json:"email,omitempty"`
	ID     string `json:"id,omitempty"`
	Number string `json:"number,omitempty"`
}

var pingramHosts = map[string]string{
	"us": "https://api.pingram.io", "ca": "https://api.ca.pingram.io", "eu": "https://api.eu.pingram.io",
}

func (p *pingram) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Pingram", "https://www.pingram.io/"
	s.Setup = "Copy the API key (pingram_sk_…) from Environments in the Pingram dashboard; " +
		"type is the ID of a notification, and Pingram creates it if it does not exist."
	s.Groups(notifier.GroupPhone, notifier.GroupMail, notifier.GroupSMS)
	s.Words("notificationapi")
	s.URL("pingram://[{type}@]{apikey}/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>pingram_(?:sk|pk)_[\w-]+)`, Is: "an API key"},
	)
	s.Secret(&p.key, "apikey", "API key").Match(`^pingram_(sk|pk)_[\w-]+$`).Example("pingram_sk_1234567890")
	s.String(&p.kind, "type", "", "type of the notification; default: apprise").Match(`^[\w-]+$`)
	// Neighbouring targets form a recipient, and a target may occur twice.
	s.Path(&p.targets, "targets", "@user ID, e-mail address and number, or some of them, for each recipient").Alias("to").
		Example("user@example.com")
	s.List(&p.channels, "channels", "channels to use; default: email or sms, by the first address or number").
		Match("^(call|email|inapp|mobile_push|slack|sms|web_push)$").Example("sms").
		Normalize(func(s string) (string, error) { return strings.ToLower(s), nil })
	s.Choice(&p.region, "region", "us", []string{"us", "ca", "eu"}, "region of the account")
	s.Choice(&p.mode, "mode", "", []string{"message", "template"}, "what to send; default: template if there is a type")
	s.String(&p.from, "from", "", "sender's e-mail address, or name").Example("Caddy <caddy@example.com>")
	mail.Copies(s, &p.cc, "cc", "e-mail addresses that get a copy").Example("user@example.com")
	mail.Copies(s, &p.bcc, "bcc", "e-mail addresses that get a blind copy").Example("user@example.com")
	mail.Copies(s, &p.reply, "reply", "e-mail addresses that replies go to").Example("user@example.com")
	s.Map(&p.tokens, ":", "tokens", "value for a field of the template")
}

func (p *pingram) Finish(s *notifier.Schema) error {
	p.template = p.mode == "template" || p.mode == "" && p.kind != ""
	p.via = p.channels
	var err error
	if p.sent, err = mail.ParseSender("from", p.from, mail.ParseAddress); err != nil {
		return err
	}
	p.group()
	if s.Recipients = len(p.recipients); s.Recipients == 0 {
		return errors.New("the URL has no recipient; add a @user ID, an e-mail address or a telephone number to the path")
	}
	if len(p.via) == 0 && !p.template {
		return errors.New("user IDs need channels; add them to the URL, as in channels=email,inapp")
	}
	return nil
}

var pingramID = lazyregexp.New(`^@?([\w-]+)$`)

// group makes recipients of the targets. A recipient ends before a target of a kind that the
// recipient has already. Invalid targets are left out.
func (p *pingram) group() {
	var current pingramRecipient
	for _, target := range pingramTargets(p.targets) {
		var place *string
		var value, channel string
		if m, ok := mail.ParseAddress(target); ok {
			place, value, channel = &current.Email, m.Address, "email"
		} else if number, err := notifier.FullPhone(target); err == nil {
			place, value, channel = &current.Number, number, "sms"
			if strings.HasPrefix(target, "+") {
				value = "+" + number
			}
		} else if id := pingramID.FindStringSubmatch(target); id != nil {
			place, value = &current.ID, id[1]
		} else {
			p.left++
			continue
		}
		if *place != "" {
			p.recipients = append(p.recipients, current)
			current = pingramRecipient{}
		}
		*place = value
		if len(p.via) == 0 && channel != "" {
			p.via = []string{channel}
		}
	}
	if current != (pingramRecipient{}) {
		p.recipients = append(p.recipients, current)
	}
}

// pingramTargets returns the targets in texts. An address in angle brackets has a name before it,
// which is no user ID.
func pingramTargets(texts []string) (out []string) {
	for _, text := range texts {
		for _, item := range mail.SplitList(text) {
			if _, ok := mail.ParseAddress(item); ok && strings.Contains(item, "<") {
				out = append(out, item)
				continue
			}
			out = append(out, strings.FieldsFunc(item, func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) })...)
		}
	}
	return out
}

// Warning implements [notifier.Warner].
func (p *pingram) Warning() string {
	if p.left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the targets are no user ID, e-mail address or number, and are left out", p.left)
}

func (p *pingram) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	numbers := make([]string, len(p.recipients))
	for i := range p.recipients {
		numbers[i] = strconv.Itoa(i)
	}
	return c.Steps.Each(ctx, numbers, func(ctx context.Context, number string) error {
		i, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		payload := p.payload(m)
		payload["to"] = p.recipients[i]
		if options := p.options(m, p.recipients[i].Email); len(options) > 0 {
			payload["options"] = map[string]any{"email": options}
		}
		resp, err := c.Do(ctx, &notifier.Request{
			URL:    pingramHosts[p.region] + "/send",
			Header: map[string]string{"Authorization": "Bearer " + p.key},
			Body:   notifier.JSON(payload),
		})
		if err == nil && !json.Valid(resp.Body) {
			return errors.New("the service's answer is not valid JSON")
		}
		return err
	})
}
