package services

import (
	"context"
	"encoding/xml"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[twilio]()

// twilio sends text messages and WhatsApp messages, or calls and reads the
// message aloud, through Twilio.
type twilio struct {
	sms
	sid, token, key, from, method string
}

func (t *twilio) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Twilio", "https://www.twilio.com/docs/messaging/api/message-resource"
	s.Setup = "Account SID and auth token are on the start page of the Twilio Console, " +
		"and the number to send from is under Phone Numbers, Manage, Active numbers."
	s.Groups(notifier.GroupSMS)
	s.Words("sms", "call", "phone call", "voice call")
	s.URL("twilio://{account_sid}:{auth_token}@{from_phone}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<account_sid>AC[0-9a-f]{32})`, Is: "the SID of an account"},
		notifier.Hint{Text: `(?<apikey>SK[0-9a-f]{32})`, Is: "the SID of an API key"},
		notifier.Hint{Text: `(?<auth_token>[0-9a-f]{32})`, Is: "an auth token", Guess: true},
	)
	t.describe(s, twilioNumber(smsPlus)).DropInvalid()
	s.Secret(&t.sid, "account_sid", "SID of the account").Alias("sid").Match(`^AC[a-f0-9]+$`).Example("AC0123456789abcdef0123456789abcdef")
	s.Secret(&t.token, "auth_token", "auth token, or the secret of the API key").Alias("token").Match(`^[a-z0-9]+$`).
		Example("abc123").Example("fedcba9876543210fedcba9876543210")
	s.String(&t.from, "from_phone", "", "number, w:number or short code to send from").Alias("from", "source").
		Normalize(twilioNumber(smsCode)).Example("15557654321")
	s.Secret(&t.key, "apikey", "SID of an API key to sign in with").Match(`^SK[a-f0-9]+$`).Example("SK0123456789")
	s.Choice(&t.method, "method", "sms", []string{"sms", "call"}, "send a text, or call and read it aloud")
}

const twilioWhatsApp = "whatsapp:"

// twilioNumber returns a reader of numbers that may have the prefix w:, or another word that begins
// with w, for WhatsApp.
func twilioNumber(number func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		mode, rest, found := strings.Cut(s, ":")
		if !found {
			return number(s)
		}
		n, err := number(strings.TrimSpace(rest))
		if mode = strings.TrimSpace(mode); mode != "" && (mode[0] == 'w' || mode[0] == 'W') {
			n = twilioWhatsApp + n
		}
		return n, err
	}
}

func (t *twilio) Finish(s *notifier.Schema) error {
	whatsapp := func(number string) bool { return strings.HasPrefix(number, twilioWhatsApp) }
	short := len(strings.TrimPrefix(t.from, twilioWhatsApp)) <= 6
	if t.method == "call" {
		if whatsapp(t.from) {
			return errors.New("there are no calls over WhatsApp; leave out the w: before the number")
		}
		s.Acknowledge = notifier.AcknowledgeNowhere // nobody can open what is read aloud
		s.Limits.Body, s.Limits.Reserve = 4000, len(twilioSayStart+twilioSayEnd)
	} else if !short {
		t.toSelf = true
	}
	if short || t.method == "call" {
		t.targets = slices.DeleteFunc(t.targets, whatsapp)
	}
	return t.sms.Finish(s)
}

func (t *twilio) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	resource, field, text := "Messages.json", "Body", m.Body
	if t.method == "call" {
		resource, field, text = "Calls.json", "Twiml", twilioSpeech(m.Body)
	}
	user := t.key
	if user == "" {
		user = t.sid
	}
	own := strings.TrimPrefix(t.from, twilioWhatsApp)
	return c.Steps.Each(ctx, t.or(own), func(ctx context.Context, number string) error {
		from, to := own, number
		if t.from != own || strings.HasPrefix(to, twilioWhatsApp) {
			from, to = twilioWhatsApp+own, twilioWhatsApp+strings.TrimPrefix(to, twilioWhatsApp)
		}
		_, err := c.Do(ctx, &notifier.Request{
			URL:    "https://api.twilio.com" + notifier.Path("2010-04-01", "Accounts", t.sid, resource),
			Header: map[string]string{"Accept": "application/json"},
			User:   user, Password: t.token,
			Body: notifier.Form(notifier.Fields("From", from, "To", to, field, text)),
		})
		return err
	})
}

const twilioSayStart, twilioSayEnd = "<Response><Say>", "</Say></Response>"

// twilioPlain undoes escapes that XML text does not need, to save space in the 4000
// characters that Twilio allows.
var twilioPlain = strings.NewReplacer("&#xA;", "\n", "&#xD;", "", "&#x9;", " ", "&#34;", `"`, "&#39;", "'")

// twilioSpeech returns the TwiML for a call: the text itself if it is TwiML, else
// the instruction to read it aloud.
func twilioSpeech(text string) string {
	if s := strings.TrimSpace(text); strings.HasPrefix(s, "<Response") || strings.HasPrefix(s, "<?xml") {
		return text
	}
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return twilioSayStart + twilioPlain.Replace(b.String()) + twilioSayEnd
}
