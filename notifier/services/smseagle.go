package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[smsEagle]()

// smsEagle sends text messages, and pictures by MMS, through an SMSEagle device.
type smsEagle struct {
	sms
	notifier.Server
	groups, contacts    []string
	token               string
	priority            int
	status, test, flash bool
}

func (e *smsEagle) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SMS Eagle", "https://www.smseagle.eu/api/"
	s.Setup = "Open Users, Access to API beside a user in the device's web interface, " +
		"enable APIv1, and generate a token with the permission to send."
	s.Groups(notifier.GroupSMS)
	s.Words("hardware gateway", "gsm modem")
	s.URL("smseagle[s]://{token}@{host}[:{port}]/{targets...}")
	s.Server(&e.Server)
	e.describe(s, smsEagleTarget,
		notifier.Prefixed{Prefix: "#", Items: &e.groups, Doc: "group of the phonebook"},
		notifier.Prefixed{Prefix: "@", Items: &e.contacts, Doc: "contact of the phonebook"})
	e.describeBatch(s)
	s.Limits.Body, s.Attachments = 1200, true
	s.Secret(&e.token, "token", "access token").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Enum(&e.priority, "priority", "normal", []notifier.Choice{
		{Name: "normal", Value: 0}, {Name: "high", Value: 1, Synonyms: []string{"+"}},
	}, "priority of the message")
	s.Bool(&e.status, "status", false, "put a symbol for the message's type before the text")
	s.Bool(&e.test, "test", false, "simulate sending")
	s.Bool(&e.flash, "flash", false, "show the message at once on the phone's display")
	s.Param("host").Example("smseagle.local")
}

var smsEagleName = lazyregexp.New(`(?i)^[#@]?[a-z0-9_-]+$`)

// smsEagleTarget reads a number, #group, @contact or contact.
func smsEagleTarget(s string) (string, error) {
	if number, err := smsAsWritten(9)(s); err == nil {
		return number, nil
	}
	switch {
	case !smsEagleName.MatchString(s):
		return "", errors.New("is not a telephone number, a #group or a @contact")
	case s[0] == '#' || s[0] == '@':
		return s, nil
	}
	return "@" + s, nil
}

func (e *smsEagle) Finish(s *notifier.Schema) error {
	if len(e.groups) > 0 || len(e.contacts) > 0 {
		return nil
	}
	return e.sms.Finish(s)
}

func (e *smsEagle) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind, pictures, files := "sms", []map[string]string{}, []*notifier.Attachment{}
	for _, a := range m.Attachments {
		if a.MediaType() != "image" {
			c.Warn("%s is left out: SMSEagle sends pictures only", a.Name)
			continue
		}
		kind, files = "mms", append(files, a)
		pictures = append(pictures, map[string]string{"content_type": a.ContentType, "content": notifier.Base64(a)})
	}
	if m.Body == "" && len(files) == 0 {
		return notifier.Refused(errors.New("SMSEagle takes text and pictures only")) // so that the message says what the file is
	}
	text := m.Body
	if e.status {
		text = m.Type.Symbol() + " " + text
	}
	const batchSize = 10
	var errs []error
	for _, to := range []struct {
		method, name string
		prefix       string // tells a group from a contact of the same name
		targets      []string
	}{
		{"sms.send_sms", "to", "", e.targets},
		{"sms.send_togroup", "groupname", "#", e.groups},
		{"sms.send_tocontact", "contactname", "@", e.contacts},
	} {
		errs = append(errs, e.each(ctx, c, smsEaglePrefixed(to.prefix, to.targets), batchSize, func(ctx context.Context, targets []string) error {
			params := map[string]any{
				"access_token": e.token, "message": text, "message_type": kind, "responsetype": "extended", "unicode": 1,
				"highpriority": e.priority, "flash": smsEagleFlag(e.flash), "test": smsEagleFlag(e.test),
				to.name: strings.ReplaceAll(strings.Join(targets, ","), to.prefix, ""),
			}
			if len(pictures) > 0 {
				params["attachments"] = pictures
			}
			return e.call(ctx, c, notifier.JSON(map[string]any{"method": to.method, "params": params}, files...))
		}))
	}
	return errors.Join(errs...)
}

func smsEaglePrefixed(prefix string, targets []string) []string {
	out := make([]string, len(targets))
	for i, t := range targets {
		out[i] = prefix + t
	}
	return out
}

func smsEagleFlag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// smsEagleResult is the result for one number.
type smsEagleResult struct {
	Status string
	Error  string `json:"error_text"`
}

// call calls the device's JSON-RPC API. The result is one object or, for several
// numbers, a list of objects.
func (e *smsEagle) call(ctx context.Context, c *notifier.Client, body *notifier.Body) error {
	var answer struct{ Result json.RawMessage }
	if err := smsAsk(ctx, c, &notifier.Request{URL: e.URL("jsonrpc", "sms"), Body: body}, &answer); err != nil {
		return err
	}
	var results []smsEagleResult
	if json.Unmarshal(answer.Result, &results) != nil {
		var one smsEagleResult
		if err := json.Unmarshal(answer.Result, &one); err != nil {
			return fmt.Errorf("the device's answer has no result; is there an SMSEagle at this address?")
		}
		results = append(results, one)
	}
	for _, r := range results {
		if r.Status != "ok" {
			return smsRefused(r.Error, r.Status)
		}
	}
	return nil
}
