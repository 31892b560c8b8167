package services

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// The e-mail has the text as plain text and as HTML, and the files.
func TestSESMail(t *testing.T) {
	m := servicetest.Message(t, "html")
	m.Incident = servicetest.Message(t, "open").Incident
	m.Title, m.Attachments = "Größe: 5 €", servicetest.Message(t, "attach").Attachments
	service := servicetest.API(func(_ *http.Request, body string) (int, string) {
		form, _ := url.ParseQuery(body)
		raw, err := base64.StdEncoding.DecodeString(form.Get("RawMessage.Data"))
		if err != nil {
			t.Fatal(err)
		}
		letter, err := mail.ReadMessage(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		subject, _ := new(mime.WordDecoder).DecodeHeader(letter.Header.Get("Subject"))
		date, _ := letter.Header.Date()
		if subject != m.Title || !date.Equal(m.Time) {
			t.Errorf("subject %q, date %s", subject, date)
		}
		for header, want := range map[string]string{
			"From": "Caddy <user@example.com>", "To": "a@example.com", "Cc": "c@example.com",
			"Reply-To": "Caddy <r@example.com>", "Bcc": "",
			"References": "<" + m.Incident.ID + "@example.com>", "In-Reply-To": "<" + m.Incident.ID + "@example.com>",
		} {
			if got := letter.Header.Get(header); got != want {
				t.Errorf("%s is %s, want %s", header, got, want)
			}
		}
		var kinds []string
		walkParts(t, letter.Header.Get("Content-Type"), letter.Body, func(kind, name string) { kinds = append(kinds, kind+" "+name) })
		if want := []string{"text/plain ", "text/html ", "text/plain report.txt", "image/png graph.png"}; !slices.Equal(kinds, want) {
			t.Errorf("parts %q, want %q", kinds, want)
		}
		return 200, ""
	})
	send := service.Destination(t,
		"ses://user@example.com/KEY/SECRET/us-east-1/a@example.com?name=Caddy&cc=c@example.com&bcc=d@example.com&reply=r@example.com")
	if err := send(m); err != nil {
		t.Fatal(err)
	}
}

// walkParts calls f for each part that is not multipart.
func walkParts(t *testing.T, contentType string, body io.Reader, f func(kind, name string)) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		t.Fatalf("%s is not made of parts", kind)
	}
	r := multipart.NewReader(body, params["boundary"])
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if strings.HasPrefix(kind, "multipart/") {
			walkParts(t, p.Header.Get("Content-Type"), p, f)
			continue
		}
		f(kind, p.FileName())
	}
}
