package services

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // as the service derives keys
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[simplePush]()

// simplePush pushes to the Simplepush app. It encrypts the message if the URL has a
// password.
type simplePush struct {
	key, salt, password string
	event               string
}

func (p *simplePush) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Simplepush", "https://simplepush.io/api"
	s.Setup = "The Simplepush app shows the key of the device; " +
		"password and salt are those of the encryption that you set up in the settings of the app."
	s.Groups(notifier.GroupPhone)
	s.Words("android", "iphone", "encrypted")
	s.URL("spush://[{salt}:{password}@]{apikey}")
	s.Limits.Title, s.Limits.Body = 1024, 10000
	s.Secret(&p.key, "apikey", "key of the device").Match(`\S`).Example("AbCdEf")
	s.Secret(&p.password, "password", "password to encrypt with")
	s.Secret(&p.salt, "salt", "salt that the app shows beside the password")
	s.String(&p.event, "event", "", "name of an event that is configured in the app").Match(`\S`)
}

func (p *simplePush) Finish(*notifier.Schema) error {
	if (p.salt == "") != (p.password == "") {
		return errors.New("encryption needs both a salt and a password, as in spush://{salt}:{password}@{apikey}")
	}
	return nil
}

func (p *simplePush) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	form := notifier.Fields("key", p.key, "title", m.Title, "msg", m.Body)
	if p.event != "" {
		form.Set("event", p.event)
	}
	if p.password != "" {
		iv := make([]byte, aes.BlockSize)
		rand.Read(iv)
		form.Set("encrypted", "true")
		form.Set("iv", fmt.Sprintf("%X", iv))
		form.Set("title", p.encrypt(iv, m.Title))
		form.Set("msg", p.encrypt(iv, m.Body))
	}
	var answer struct{ Status, Message string }
	err := c.DoJSON(ctx, &notifier.Request{URL: "https://api.simplepush.io/send", Body: notifier.Form(form)}, &answer)
	if err == nil && answer.Status != "OK" {
		return refusedError(0, cmp.Or(answer.Message, answer.Status))
	}
	return err
}

// encrypt encrypts text with AES-128 in CBC mode and PKCS #7 padding. The key is
// the first 16 bytes of the SHA-1 of password and salt, as the app expects.
func (p *simplePush) encrypt(iv []byte, text string) string {
	sum := sha1.Sum([]byte(p.password + p.salt)) //nolint:gosec // see above
	block, err := aes.NewCipher(sum[:16])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	data := []byte(text)
	pad := aes.BlockSize - len(data)%aes.BlockSize
	data = append(data, bytes.Repeat([]byte{byte(pad)}, pad)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(data, data)
	return base64.URLEncoding.EncodeToString(data)
}
