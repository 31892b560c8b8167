package services

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[apprise]()

// apprise sends the message to an Apprise API server or to another gateway with
// the same API, which delivers it to the URLs that it stores under a key.
type apprise struct {
	notifier.Server
	path   []string
	key    string
	tags   []string
	method string
	header map[string]string
}

func (a *apprise) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Apprise API", "https://github.com/caronc/apprise-api"
	s.Recipients = 1 // the list has tags
	s.Setup = "The host must run Apprise API or another gateway like this one, " +
		"and token is the key under which that server stores the destinations."
	s.Groups(notifier.GroupServer)
	s.Words("caddy-notify", "gateway")
	s.URL("apprise[s]://[{user}[:{password}]@]{host}[:{port}][/{path...}]/{token}")
	s.Native("http://{host...}[/{path...}]/notify/{token}", "https://{host...}[/{path...}]/notify/{token}")
	s.Attachments = true
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Server(&a.Server)
	s.Path(&a.path, "path", "path of the gateway on the server")
	s.Secret(&a.key, "token", "key of the configuration").Match(`^[A-Z0-9_-]{1,128}$`).Alias("to").Example("ops")
	s.List(&a.tags, "tags", "tags to send to").Alias("tag")
	s.Choice(&a.method, "method", "form", []string{"form", "json"}, "encoding of the request")
	s.Headers(&a.header, "headers", "HTTP header to add")
	s.Param("host").Example("apprise.example.com")
}

func (a *apprise) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	header := maps.Clone(a.header)
	if header == nil {
		header = map[string]string{}
	}
	header["Accept"] = "application/json"
	header["X-Apprise-ID"] = uuid.NewString()
	header[notifier.HopsHeader] = strconv.Itoa(m.Hops + 1)
	_, err := c.Do(ctx, &notifier.Request{
		URL:    a.URL(append(append([]string{}, a.path...), "notify", a.key)...),
		Header: header,
		Login:  &a.Server,
		Body:   a.body(m),
		// Apprise API answers 204 if it does not know the key.
		Accept: func(code int) bool { return code == 200 },
	})
	return err
}

// body returns the message in the encoding that the parameter method selects.
func (a *apprise) body(m *notifier.Message) *notifier.Body {
	fields := [][2]string{{"title", m.Title}, {"body", m.Body}, {"type", string(m.Type)}, {"format", string(m.Format)}}
	if m.Incident.ID != "" {
		fields = append(fields, [2]string{"incident", m.Incident.ID})
	}
	if m.Link.URL != "" {
		// The text has it, too, for gateways that do not know the field.
		fields = append(fields, [2]string{m.Link.Field(), m.Link.URL})
	}
	if a.method == "json" {
		payload := map[string]any{}
		for _, f := range fields {
			payload[f[0]] = f[1]
		}
		if len(a.tags) > 0 {
			payload["tag"] = a.tags
		}
		var files []map[string]string
		for _, f := range m.Attachments {
			files = append(files, map[string]string{"filename": f.Name, "base64": notifier.Base64(f), "mimetype": f.ContentType})
		}
		if files != nil {
			payload["attachments"] = files
		}
		return notifier.JSON(payload, m.Attachments...)
	}
	for _, t := range a.tags {
		fields = append(fields, [2]string{"tag", t})
	}
	if len(m.Attachments) == 0 {
		form := notifier.Fields()
		for _, f := range fields {
			form.Add(f[0], f[1])
		}
		return notifier.Form(form)
	}
	var parts []notifier.FormPart
	for _, f := range fields {
		parts = append(parts, notifier.FormPart{Name: f[0], Value: f[1]})
	}
	for i, f := range m.Attachments {
		parts = append(parts, notifier.FormPart{Name: fmt.Sprintf("file%02d", i+1), File: f})
	}
	return notifier.Multipart(parts...)
}
