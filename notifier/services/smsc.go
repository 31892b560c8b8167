package services

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[smsc]()

// smsc sends text messages, and files by MMS, through SMSC.ru.
type smsc struct {
	sms
	user, password, sender string
	translit               bool
}

func (x *smsc) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SMSC", "https://smsc.ru/api/http/"
	s.Setup = "User and password are the login and the password of your account at smsc.ru."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("russia", "ukraine", "kazakhstan")
	s.URL("smsc://{user}:{password}@{targets...}")
	x.describe(s, notifier.FullPhone)
	s.Attachments = true
	s.String(&x.user, "user", "", "login").Example("alice")
	s.Secret(&x.password, "password", "password").Alias("pass").Example("pa55word")
	s.String(&x.sender, "sender", "", "number or name to send from")
	s.Bool(&x.translit, "translit", false, "transliterate the text into Latin letters")
}

func (x *smsc) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	parts := []notifier.FormPart{
		{Name: "login", Value: x.user},
		{Name: "psw", Value: x.password},
		{Name: "phones", Value: strings.Join(x.targets, ",")},
		{Name: "fmt", Value: "3"}, // answers in JSON
	}
	translit := map[bool]string{true: "1"}[x.translit]
	charset := map[bool]string{false: "utf-8"}[smscASCII(m.Body+x.sender)] // the default is windows-1251
	for _, p := range []notifier.FormPart{
		{Name: "sender", Value: x.sender}, {Name: "translit", Value: translit}, {Name: "charset", Value: charset},
	} {
		if p.Value != "" {
			parts = append(parts, p)
		}
	}
	parts = append(parts, notifier.FormPart{Name: "mes", Value: m.Body})
	q := &notifier.Request{URL: "https://smsc.ru/sys/send.php"}
	if len(m.Attachments) > 0 {
		parts = append(parts, notifier.FormPart{Name: "mms", Value: "1"})
		for i, a := range m.Attachments {
			parts = append(parts, notifier.FormPart{Name: fmt.Sprintf("mes%d", i), File: a})
		}
		q.Body = notifier.Multipart(parts...)
	} else {
		form := notifier.Fields()
		for _, p := range parts {
			form.Set(p.Name, p.Value)
		}
		q.Body = notifier.Form(form)
	}
	return checkedDo(ctx, c, q, "error_code", "error")
}

// smscASCII reports whether s has no characters beyond ASCII.
func smscASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
