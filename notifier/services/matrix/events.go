package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"maunium.net/go/mautrix/crypto/attachment"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxEventSize is the maximum size of the content of an event, in bytes: 64 KiB
// minus what the server adds.
const maxEventSize = 61536

// maxEncryptedSize is the same for an encrypted event, which is a third longer.
const maxEncryptedSize = maxEventSize/4*3 - 1024

// maxEncryptedFile is the maximum size of a file to encrypt, in bytes: it is in
// memory meanwhile.
const maxEncryptedFile = 10 << 20

// contents uploads the files and returns the events of the message: icon, files,
// and the text last.
//
// For an encrypted room the files are encrypted, each with a key that is in its
// event.
func (s *session) contents(
	ctx context.Context, c *notifier.Client, x *service, m *notifier.Message, encrypted bool,
) (events []namedEvent, err error) {
	if icon := m.Icon(32); x.image && icon != "" && s.version == "2" {
		name := m.Title
		if name == "" {
			name = string(m.Type)
		}
		events = append(events, namedEvent{"icon", map[string]any{"msgtype": "m.image", "url": icon, "body": name}})
	}
	for i, a := range m.Attachments {
		if s.version == "2" && a.MediaType() != "image" {
			c.Warn("Matrix: version 2 of the API takes pictures only; file %d is left out", i+1)
			continue
		}
		key := fmt.Sprint("file ", i)
		event := map[string]any{"msgtype": "m.image", "body": a.Name, "info": map[string]any{"mimetype": a.ContentType, "size": a.Size}}
		switch {
		case encrypted && a.Size > maxEncryptedFile:
			c.Warn("Matrix: file %d is too large to be encrypted and is left out; the maximum is 10 MiB", i+1)
			continue
		case encrypted:
			event["file"], err = notifier.OnceValue(c.Steps, "encrypted "+key, func() (encryptedFile, error) { return s.uploadEncrypted(ctx, c, a) })
		default:
			event["url"], err = notifier.OnceValue(c.Steps, key, func() (string, error) { return s.upload(ctx, c, a) })
		}
		if err != nil {
			return nil, fmt.Errorf("uploading file %d: %w", i+1, err)
		}
		if a.MediaType() != "image" {
			event["msgtype"], event["filename"] = "m.file", a.Name
		}
		events = append(events, namedEvent{key, event})
	}
	if m.Title == "" && m.Body == "" {
		return events, nil
	}
	size := maxEventSize
	if encrypted {
		size = maxEncryptedSize
	}
	return append(events, namedEvent{"text", textEvent(c, x.msgtype, m, size)}), nil
}

// textEvent returns the event with the text, cut to a size in bytes.
func textEvent(c *notifier.Client, msgtype string, m *notifier.Message, size int) map[string]any {
	text := *m
	if text.Title != "" {
		text.Title = "# " + text.Title
	}
	body := plainText(&text, "\r\n")
	event := map[string]any{"msgtype": "m." + msgtype, "body": body}
	if m.Foreign {
		// See https://spec.matrix.org/latest/client-server-api/#user-and-room-mentions.
		event["m.mentions"] = map[string]any{}
	}
	if m.Format != notifier.Text {
		event["format"], event["formatted_body"] = "org.matrix.custom.html", htmlText(m)
	}
	if jsonSize(event) > size {
		c.Warn("Matrix: the message is too long for an event and was cut")
		delete(event, "format")
		delete(event, "formatted_body")
	}
	for over := jsonSize(event) - size; over > 0; over = jsonSize(event) - size {
		body = strings.ToValidUTF8(body[:max(len(body)-over, 0)], "")
		event["body"] = body
	}
	return event
}

// jsonSize returns the size of an event in bytes.
func jsonSize(event map[string]any) int {
	text, _ := json.Marshal(event)
	return len(text)
}

// upload stores a file on the server and returns its mxc:// address.
func (s *session) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (string, error) {
	q := s.request("POST", nil, "upload")
	q.URL = strings.Replace(q.URL, "/_matrix/client/", "/_matrix/media/", 1)
	q.Query = notifier.Fields("filename", a.Name)
	q.Body = notifier.File("", a)
	var answer struct {
		Address string `json:"content_uri"`
	}
	err := s.do(ctx, c, q, &answer)
	if err == nil && answer.Address == "" {
		err = errors.New("the server did not return the address of the file")
	}
	return answer.Address, err
}

// encryptedFile is a file on the server, and the key to it.
type encryptedFile struct {
	attachment.EncryptedFile
	URL string `json:"url"`
}

// uploadEncrypted stores a file on the server, encrypted with a new key, and
// returns its address and the key.
// See https://spec.matrix.org/latest/client-server-api/#sending-encrypted-attachments.
func (s *session) uploadEncrypted(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (encryptedFile, error) {
	data, err := io.ReadAll(a.Open())
	if err != nil {
		return encryptedFile{}, fmt.Errorf("reading the file: %w", err)
	}
	file := attachment.NewEncryptedFile()
	file.EncryptInPlace(data)
	// The server learns neither the name nor the type of the file.
	address, err := s.upload(ctx, c, notifier.NewAttachment("file", "application/octet-stream", data))
	return encryptedFile{*file, address}, err
}
