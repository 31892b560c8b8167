package services

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// An encrypted text can be decrypted with the key, is authenticated, and differs
// each time.
func TestPushoverEncrypt(t *testing.T) {
	key := strings.Repeat("0f", 32)
	raw, _ := hex.DecodeString(key)
	for _, text := range []string{"", "x", "Volume /data is at 91% on host-7", strings.Repeat("漢字 ☃ ", 500)} {
		sealed, err := pushoverEncrypt(key, text)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := pushoverEncrypt(key, text); again == sealed {
			t.Error("the same text is encrypted in the same way twice")
		}
		b, err := base64.StdEncoding.DecodeString(sealed)
		if err != nil || len(b) < aes.BlockSize+sha256.Size {
			t.Fatalf("encrypted %q is %d bytes: %v", text, len(b), err)
		}
		b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
		mac := hmac.New(sha256.New, raw)
		mac.Write(b)
		if !hmac.Equal(sum, mac.Sum(nil)) {
			t.Errorf("%q: the sum is wrong", text)
		}
		block, _ := aes.NewCipher(raw)
		iv, plain := b[:aes.BlockSize], b[aes.BlockSize:]
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, plain)
		plain = plain[:len(plain)-int(plain[len(plain)-1])]
		z, err := gzip.NewReader(bytes.NewReader(plain))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil || string(got) != text {
			t.Errorf("got %q, want %q: %v", got, text, err)
		}
	}
	if _, err := pushoverEncrypt("no key", "x"); err == nil {
		t.Error("an invalid key was accepted")
	}
}

// pushoverMessage reads a message as the service does.
func pushoverMessage(t *testing.T, q *http.Request, body string) (fields url.Values, picture string) {
	t.Helper()
	r := httptest.NewRequest(q.Method, q.URL.String(), strings.NewReader(body))
	r.Header = q.Header
	if err := r.ParseMultipartForm(1 << 20); err != nil && err != http.ErrNotMultipart {
		t.Fatal(err)
	}
	if r.MultipartForm != nil {
		picture = r.MultipartForm.File["attachment"][0].Filename
	}
	return r.PostForm, picture
}

// An emergency with several pictures sounds one alarm. A file that Pushover does
// not accept is left out, and the rest of the message is sent.
func TestPushoverPictures(t *testing.T) {
	picture := func(name string) *notifier.Attachment {
		return notifier.NewAttachment(name, "image/png", servicetest.Picture)
	}
	log := notifier.NewAttachment("a.log", "text/plain", []byte("x"))
	huge := notifier.NewAttachment("huge.png", "image/png", make([]byte, pushoverImage+1))
	for _, c := range []struct {
		name, text string
		files      []*notifier.Attachment
		want       []string // the messages: priority, retry, picture
		err        string
	}{
		{
			"pictures", "disk full",
			[]*notifier.Attachment{picture("a.png"), picture("b.png"), picture("c.png")},
			[]string{"2 900 a.png", "0  b.png", "0  c.png"},
			"",
		},
		{"a picture that is too large", "disk full", []*notifier.Attachment{huge, picture("b.png")}, []string{"2 900 ", "0  b.png"}, ""},
		{"no picture", "disk full", []*notifier.Attachment{log, huge}, []string{"2 900 "}, ""},
		{"no text", "", []*notifier.Attachment{log, picture("b.png"), picture("c.png")}, []string{"2 900 b.png", "0  c.png"}, ""},
		{"a line about each", "", []*notifier.Attachment{log, huge}, []string{"2 900 "}, "the text has arrived, but not the files"},
	} {
		var got []string
		service := servicetest.API(func(q *http.Request, body string) (int, string) {
			fields, name := pushoverMessage(t, q, body)
			got = append(got, strings.Join([]string{fields.Get("priority"), fields.Get("retry"), name}, " "))
			return 200, `{"status": 1}`
		})
		err := service.Destination(t, "pover://user-key@app-token?priority=emergency")(&notifier.Message{Body: c.text, Attachments: c.files})
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %s", c.name, got, err, c.want, c.err)
		}
	}
}

// Markdown becomes HTML unless the HTML is too long for a message.
func TestPushoverMarkdown(t *testing.T) {
	text := strings.Repeat("- **disk** `sda` is *full*\n", 100)
	messages := 0
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		fields, _ := pushoverMessage(t, q, body)
		part := fields.Get("message")
		messages++
		if n := utf8.RuneCountInString(part); n > 1024 || strings.Contains(part, "<") != (fields.Get("html") == "1") {
			t.Errorf("html %q, %d characters: %s", fields.Get("html"), n, part)
		}
		return 200, `{"status": 1}`
	})
	for _, overflow := range []string{"split", "truncate"} {
		err := service.Destination(t, "pover://user-key@app-token?format=markdown&overflow="+
			overflow)(&notifier.Message{Body: text, Format: notifier.Markdown})
		if err != nil {
			t.Errorf("%s: %v", overflow, err)
		}
	}
	if messages != 4 {
		t.Errorf("%d messages, want 3 parts and a beginning", messages)
	}
}
