package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[formHook]()

// formHook posts the message as a web form to any address.
type formHook struct {
	webhook
	params   map[string]string
	attachAs string
}

func (f *formHook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Form", "https://url.spec.whatwg.org/#application/x-www-form-urlencoded"
	s.Setup = "A web server at the host must accept a form with the fields version, title, message and type."
	s.Groups(notifier.GroupServer)
	s.Words("webhook", "http post", "form data", "php")
	f.describe(s, "form[s]", "version", "title", "message", "type", "incident", "acknowledge_url")
	s.Acknowledge = notifier.AcknowledgeInField
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	describeParams(s, &f.params)
	s.String(&f.attachAs, "attach-as", "file*", "field name of files; the * becomes 01, 02 and so on").Normalize(fileField)
}

func (f *formHook) Finish(s *notifier.Schema) error {
	if f.sign != "" && f.method == http.MethodGet {
		return errors.New("sign needs a request with a body; leave out method=GET")
	}
	return f.webhook.Finish(s)
}

func (f *formHook) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	standard := []field{{"version", "1.0"}, {"title", m.Title}, {"message", m.Body}, {"type", string(m.Type)}}
	if m.Incident.ID != "" {
		standard = append(standard, field{"incident", m.Incident.ID})
	}
	if m.Link.URL != "" {
		standard = append(standard, field{m.Link.Field(), m.Link.URL})
	}
	fields := f.fields(standard...)
	form := map[string]string{}
	var parts []notifier.FormPart
	for _, x := range fields {
		form[x.name] = x.value.(string)
		parts = append(parts, notifier.FormPart{Name: x.name, Value: x.value.(string)})
	}
	for i, a := range m.Attachments {
		name := strings.Replace(f.attachAs, "*", fmt.Sprintf("%02d", i+1), 1)
		parts = append(parts, notifier.FormPart{Name: name, File: a})
	}
	q := f.request(nil)
	q.Query = values(f.params)
	switch {
	case len(m.Attachments) > 0:
		q.Body = notifier.Multipart(parts...)
	case f.method == "GET":
		if q.Query == nil {
			q.Query = url.Values{}
		}
		for name, value := range form {
			q.Query.Set(name, value)
		}
	default:
		q.Body = notifier.Form(values(form))
	}
	return f.do(ctx, c, m, &q)
}

var fileFieldPattern = lazyregexp.New(`^([A-Za-z0-9_-]*)[*?+$:.%]+([A-Za-z0-9_-]*)$|^[A-Za-z0-9_-]+$`)

// fileField checks the field name of files. It replaces wildcards, which can be
// several different characters, by one *.
func fileField(s string) (string, error) {
	m := fileFieldPattern.FindStringSubmatch(s)
	switch {
	case m == nil || m[0] != s || len(strings.Trim(s, "*?+$:.%")) == 0:
		return "", errors.New("must be a field name with a * in it, as in file*")
	case strings.ContainsAny(s, "*?+$:.%"):
		return m[1] + "*" + m[2], nil
	}
	return s, nil
}
