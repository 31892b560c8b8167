package services

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

var _ = notifier.Register[brevo]()

// brevo sends e-mail through Brevo, formerly Sendinblue.
type brevo struct{ mailAPI }

func (b *brevo) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Brevo", "https://developers.brevo.com/reference/sendtransacemail"
	s.Setup = "Create an API key (not an SMTP key) in the settings of the Brevo account, " +
		"and verify in Brevo the address that the messages come from."
	s.Groups(notifier.GroupMail)
	s.Words("sendinblue")
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // a thread
	b.describeKeyFirst(s, "brevo").Match(`^[a-z0-9._-]+$`)
	s.Hints(
		notifier.Hint{Text: `(?<apikey>xkeysib-[0-9a-f]{64}-\w{16})`, Is: "an API key"},
		notifier.Hint{
			Text: `xsmtpsib-\S+`, Is: "an SMTP key",
			Note: "Brevo needs an API key, which begins with xkeysib-; an SMTP key works with the service E-Mail",
		},
	)
	b.describeReply(s)
	s.Param("apikey").Example("xkeysib-0123456789abcdef")
}

func (b *brevo) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	html, text := mailBodies(m)
	payload := map[string]any{
		"sender": mailObject(b.sender), "subject": mailSubject(m),
		"htmlContent": html,
		"textContent": text,
	}
	if r, ok := mail.ParseAddress(b.replyTo); ok {
		payload["replyTo"] = map[string]string{"email": r.Address}
	}
	if header := b.threadHeader(m, nil); header != nil {
		payload["headers"] = header
	}
	var files []map[string]string
	for _, a := range m.Attachments {
		files = append(files, map[string]string{"name": brevoFileName(a.Name), "content": notifier.Base64(a)})
	}
	if files != nil {
		payload["attachment"] = files
	}
	return b.each(ctx, c, 1, func(ctx context.Context, rcpt mail.Recipients) error {
		return c.Post(ctx, "https://api.brevo.com/v3/smtp/email",
			notifier.JSON(mailRecipients(rcpt, payload, "to", "cc", "bcc"), m.Attachments...), map[string]string{"api-key": b.apikey})
	})
}

// brevoFileName returns name, with .txt added if Brevo does not accept files with
// its extension. Brevo would refuse the whole message.
func brevoFileName(name string) string {
	if slices.Contains(brevoExtensions, strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))) {
		return name
	}
	return name + ".txt"
}

var brevoExtensions = strings.Fields(`xlsx xls ods docx docm doc csv pdf txt rtf msg pub mobi ppt pptx eps odt ics xml css html htm shtml
	gif jpg jpeg png tif tiff bmp cgm zip tar ez pkpass mp3 m4a m4v wma ogg flac wav aif aifc aiff mp4 mov avi mkv mpeg mpg wmv`)
