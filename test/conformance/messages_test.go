package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// message returns a message by the name that cases have: split and truncate are longer than any
// service takes, the others are those of the golden files.
func message(t *testing.T, name string) *notifier.Message {
	t.Helper()
	if name != "split" && name != "truncate" {
		return servicetest.Message(t, name)
	}
	var words []string
	for i := range 400 {
		words = append(words, fmt.Sprintf("%04d some words that fill the line", i))
	}
	return &notifier.Message{Title: "Long log", Body: strings.Join(words, " "), Type: notifier.Info}
}

// newRequest returns the request of a client that sends a message to a URL.
func newRequest(t *testing.T, address string, m *notifier.Message) *http.Request {
	t.Helper()
	format := cmp.Or(m.Format, notifier.Text)
	var body bytes.Buffer
	contentType := gatewaytest.TypeJSON
	var err error
	if len(m.Attachments) > 0 {
		contentType, err = writeForm(&body, address, format, m)
	} else {
		err = json.NewEncoder(&body).Encode(map[string]any{
			"urls": []string{address}, "title": m.Title, "body": m.Body, "type": m.Type, "format": format,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/notify", &body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", gatewaytest.TypeJSON)
	return r
}

// writeForm writes a message with files as a form, and returns its type.
func writeForm(to io.Writer, address string, format notifier.Format, m *notifier.Message) (contentType string, err error) {
	form := multipart.NewWriter(to)
	for _, field := range [][2]string{
		{"urls", address}, {"title", m.Title}, {"body", m.Body}, {"type", string(m.Type)}, {"format", string(format)},
	} {
		if err := form.WriteField(field[0], field[1]); err != nil {
			return "", err
		}
	}
	for _, f := range m.Attachments {
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf(`form-data; name="attach"; filename="%s"`, f.Name)}, "Content-Type": {f.ContentType},
		})
		if err == nil {
			_, err = io.Copy(part, f.Open())
		}
		if err != nil {
			return "", err
		}
	}
	return form.FormDataContentType(), form.Close()
}
