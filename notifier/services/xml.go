package services

import (
	"context"
	"encoding/xml"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[xmlHook]()

// xmlHook posts the message in a SOAP envelope to a URL. The incident and the address
// to acknowledge it are header fields, because the schema of the message, which
// receivers check, has no elements for them.
type xmlHook struct{ webhook }

func (x *xmlHook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "XML", "https://www.w3.org/TR/soap11/"
	s.Setup = "The host must run an HTTP server that accepts the message as XML."
	s.Groups(notifier.GroupServer)
	s.Words("webhook", "http post", "soap")
	x.describe(s, "xml[s]", "Version", "Subject", "Message", "MessageType")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Acknowledge = notifier.AcknowledgeInField
	s.Ignore("-*", "XML webhooks have no query parameters")
}

func (x *xmlHook) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var b strings.Builder
	b.WriteString(envelopeStart + "        <Notification")
	if len(x.payload) == 0 {
		b.WriteString(notificationSchema)
	}
	b.WriteString(">\n            ")
	for _, f := range x.fields(
		field{"Version", "1.1"}, field{"Subject", m.Title}, field{"Message", m.Body}, field{"MessageType", string(m.Type)},
	) {
		name := xmlName(f.name)
		b.WriteString("<" + name + ">" + escapeXML(f.value.(string)) + "</" + name + ">")
	}
	b.WriteString("\n            ")
	if len(m.Attachments) > 0 {
		b.WriteString(`<Attachments format="base64">`)
		for _, a := range m.Attachments {
			b.WriteString(`<Attachment filename="` + escapeXML(a.Name) + `" mimetype="` + escapeXML(a.ContentType) + `">` +
				notifier.Base64(a) + "</Attachment>")
		}
		b.WriteString("</Attachments>")
	}
	b.WriteString(envelopeEnd)
	q := x.request(notifier.Splice("application/xml", []byte(b.String()), m.Attachments...))
	if m.Incident.ID != "" || m.Link.URL != "" {
		q.Header = map[string]string{}
		acknowledge, answer := m.Link.Fields()
		for name, value := range map[string]string{"Incident": m.Incident.ID, "Acknowledge-Url": acknowledge, "Answer-Url": answer} {
			if value != "" {
				q.Header[name] = value
			}
		}
		for name, value := range x.header {
			q.Header[http.CanonicalHeaderKey(name)] = value
		}
	}
	return x.do(ctx, c, m, &q)
}

const (
	envelopeStart = `<?xml version='1.0' encoding='utf-8'?>
<soapenv:Envelope
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <soapenv:Body>
`
	envelopeEnd = `
       </Notification>
    </soapenv:Body>
</soapenv:Envelope>`
	// A message without custom fields names its schema, which receivers check.
	notificationSchema = ` xmlns:xsi="https://raw.githubusercontent.com/caronc/apprise/master/apprise/assets/NotifyXML-1.1.xsd"`
)

var (
	xmlText     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")
	notXMLName  = lazyregexp.New(`[^A-Za-z0-9_\-\pL]+`)
	notASCII    = lazyregexp.New(`[^\x00-\x7f]+`)
	notXMLChars = lazyregexp.New(`[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]`)
)

// xmlName returns the name of an element for a field: the letters and digits of its name. If they
// cannot begin one, an underscore comes first. Letters that not every reader of XML knows are left
// out.
func xmlName(field string) string {
	name := notXMLName.ReplaceAllString(field, "")
	if first, _ := utf8.DecodeRuneInString(name); first != '_' && !unicode.IsLetter(first) || name == "" {
		name = "_" + name
	}
	if _, err := xml.NewDecoder(strings.NewReader("<" + name + "/>")).Token(); err != nil {
		return xmlName(notASCII.ReplaceAllString(name, ""))
	}
	return name
}

// escapeXML escapes a text and drops characters that XML does not allow.
func escapeXML(s string) string { return xmlText.Replace(notXMLChars.ReplaceAllString(s, "")) }
