package mailto

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[deltaChat]()

// deltaChat sends messages of Delta Chat, which are mails.
type deltaChat struct{ service }

func (d *deltaChat) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Delta Chat", "https://github.com/chatmail/core/blob/main/spec.md"
	s.Setup = "Create a mail account for the gateway, whose user and password the URL has, " +
		"and write to it once with the Delta Chat app that shall get the messages."
	s.Groups(notifier.GroupChat, notifier.GroupMail)
	s.NoWeb()
	s.Words("chatmail", "autocrypt", "arcanechat")
	s.URL("deltachat[s]://[{user}[:{password}]@]{host}[:{port}][/{targets...}]")
	s.Limits.Title = 0
	d.chat = true
	d.describe(s)
}

// Send sends plain text, whatever the format of the URL: Delta Chat shows no other.
func (d *deltaChat) Send(ctx context.Context, c *notifier.Client, msg *notifier.Message) error {
	plain := *msg
	plain.Body, plain.Format = markup.Convert(msg.Body, msg.Format, notifier.Text), notifier.Text
	return d.service.Send(ctx, c, &plain)
}

// chatSubject is the max number of characters of a text in the subject of its mail.
const chatSubject = 50

// A chatHeader has the header fields of a message of Delta Chat.
type chatHeader struct {
	subject   string // for mail programs
	autocrypt string // the sender's key; "" if the URL has none
}

// chatHeader returns the header of a message of Delta Chat. A mail that is signed or
// encrypted does not show its text in the subject.
func (m *service) chatHeader(ctx context.Context, c *notifier.Client, msg *notifier.Message) (h chatHeader, err error) {
	if !m.chat {
		return h, nil
	}
	switch m.pgpMode() {
	case pgpEncrypt:
		h.subject = "Chat: Encrypted message"
	case pgpSign:
		h.subject = "Chat:"
	default:
		text := []rune(strings.Join(strings.Fields(msg.Body), " "))
		if len(text) > chatSubject {
			text = append(text[:chatSubject:chatSubject], []rune("...")...)
		}
		h.subject = "Chat: " + string(text)
	}
	if m.keys != nil {
		h.autocrypt, err = m.autocrypt(ctx, c)
	}
	return h, err
}

// autocrypt returns the field with the sender's public key, with which an app can
// encrypt its answers (https://autocrypt.org/level1.html), or "" without a key.
func (m *service) autocrypt(ctx context.Context, c *notifier.Client) (string, error) {
	keys, err := m.keys.private.read(ctx, c)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	var public bytes.Buffer
	if err := keys[0].Serialize(&public); err != nil {
		return "", fmt.Errorf("pgpprv %w", err)
	}
	const line = 72 // characters of base64; the spaces between are no part of it
	var b strings.Builder
	b.WriteString("addr=" + m.sender.Address + "; keydata=")
	for part := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(public.Bytes())), line) {
		b.WriteByte(' ')
		b.Write(part)
	}
	return b.String(), nil
}
