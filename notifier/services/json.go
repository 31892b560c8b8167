package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[jsonHook]()

// jsonHook posts the message as a JSON object to any web server.
type jsonHook struct {
	webhook
	params map[string]string
}

func (j *jsonHook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "JSON", "https://www.rfc-editor.org/rfc/rfc8259"
	s.Setup = "A web server of yours must accept a POST request with a JSON object at this address; there is nothing to register."
	s.Groups(notifier.GroupServer)
	s.Words("webhook", "custom webhook", "http post", "own program", "n8n", "node-red", "zapier", "rest")
	j.describe(s, "json[s]", "version", "title", "message", "type", "attachments", "incident", "incident_open_seconds", "acknowledge_url")
	s.Acknowledge = notifier.AcknowledgeInField
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	describeParams(s, &j.params)
}

func (j *jsonHook) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	q := j.request(notifier.JSON(j.message(m), m.Attachments...))
	q.Query = values(j.params)
	return j.do(ctx, c, m, &q)
}

// jsonPayload is the payload if the URL renames no field.
type jsonPayload struct {
	AcknowledgeURL string     `json:"acknowledge_url,omitempty"`
	AnswerURL      string     `json:"answer_url,omitempty"`
	Attachments    []jsonFile `json:"attachments"`
	Incident       string     `json:"incident,omitempty"`
	OpenSeconds    int64      `json:"incident_open_seconds,omitempty"`
	Message        string     `json:"message"`
	Title          string     `json:"title"`
	Type           string     `json:"type"`
	Version        string     `json:"version"`
}

type jsonFile struct {
	Base64   string `json:"base64"`
	Filename string `json:"filename"`
	MIMEType string `json:"mimetype"`
}

// message returns the message as the URL asks for it.
func (j *jsonHook) message(m *notifier.Message) any {
	p := jsonPayload{
		Attachments: make([]jsonFile, len(m.Attachments)), Message: m.Body, Title: m.Title, Type: string(m.Type),
		Version: "1.0", Incident: m.Incident.ID, OpenSeconds: int64(m.Incident.OpenFor.Seconds()),
	}
	p.AcknowledgeURL, p.AnswerURL = m.Link.Fields()
	for i, a := range m.Attachments {
		p.Attachments[i] = jsonFile{notifier.Base64(a), a.Name, a.ContentType}
	}
	if len(j.payload) == 0 {
		return &p
	}
	renamed := map[string]any{}
	standard := []field{
		{"version", p.Version},
		{"title", p.Title},
		{"message", p.Message},
		{"attachments", p.Attachments},
		{"type", p.Type},
	}
	if p.Incident != "" {
		standard = append(standard, field{"incident", p.Incident})
	}
	if p.OpenSeconds != 0 {
		standard = append(standard, field{"incident_open_seconds", p.OpenSeconds})
	}
	if p.AcknowledgeURL != "" {
		standard = append(standard, field{"acknowledge_url", p.AcknowledgeURL})
	}
	if p.AnswerURL != "" {
		standard = append(standard, field{"answer_url", p.AnswerURL})
	}
	for _, f := range j.fields(standard...) {
		renamed[f.name] = f.value
	}
	return renamed
}
