package services

import (
	"context"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[xmlHook]()

// xmlHook posts the message in a SOAP envelope to an address of the user's.
type xmlHook struct{ webhook }

func (x *xmlHook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "XML", "https://www.w3.org/TR/soap11/"
	x.describe(s, "xml[s]")
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
		if name := notXMLName.ReplaceAllString(f.name, ""); name != "" {
			b.WriteString("<" + name + ">" + escapeXML(f.value.(string)) + "</" + name + ">")
		}
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
	_, err := c.Do(ctx, x.request(notifier.Splice("application/xml", []byte(b.String()), m.Attachments...)))
	return err
}
