package notifier

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestFilesInBodies checks that a file in a body is encoded as its place
// requires, and that the body's length is known before it is written.
func TestFilesInBodies(t *testing.T) {
	write := func(b *Body) string {
		var out bytes.Buffer
		for range 2 { // a body can be written again
			out.Reset()
			n, err := b.WriteTo(&out)
			if err != nil || n != b.Size() || n != int64(out.Len()) {
				t.Errorf("wrote %d bytes of a body of %d: %v", n, b.Size(), err)
			}
		}
		return out.String()
	}
	for _, size := range []int{0, 1, 2, 3, 56, 57, 58, 114, 115, 5000} {
		// Its encoding has all of the characters that are special in forms.
		data := bytes.Repeat([]byte{0xfb, 0xff, 0xbf, 'x'}, size/4+1)[:size]
		want := base64.StdEncoding.EncodeToString(data)
		a := NewAttachment("a.bin", "", data)

		form, err := url.ParseQuery(write(Form(url.Values{"a": {"data:" + Base64(a)}, "b": {"x & y"}, "c": {Base64(a)}}, a, a)))
		if err != nil || form.Get("a") != "data:"+want || form.Get("b") != "x & y" || form.Get("c") != want {
			t.Errorf("%d bytes: the form is %q, %v", size, form, err)
		}

		mark := base64.StdEncoding.EncodeToString([]byte(Base64(a)))
		mail := MIME([]byte("X: y\r\n\r\n"+mark+"\r\n.\r\n"), a)
		text := write(mail)
		middle, ok := strings.CutSuffix(strings.TrimPrefix(text, "X: y\r\n\r\n"), "\r\n.\r\n")
		lines := strings.Split(middle, "\r\n")
		for i, line := range lines {
			if len(line) > 76 || i < len(lines)-1 && len(line) != 76 {
				t.Errorf("%d bytes: a line of %d characters", size, len(line))
			}
		}
		if !ok || strings.Join(lines, "") != want {
			t.Errorf("%d bytes: the mail is %q", size, text)
		}

		composed := ComposedAttachment("a.eml", mail)
		if got := write(File("", composed)); got != text {
			t.Errorf("%d bytes: the mail as a file is %q", size, got)
		}
	}
}

// TestUnresolvedPlaceholder checks that a placeholder of a file that the body
// does not have is an error and is never sent.
func TestUnresolvedPlaceholder(t *testing.T) {
	a, b := NewAttachment("a", "", []byte("a")), NewAttachment("b", "", []byte("b"))
	encoded := base64.StdEncoding.EncodeToString([]byte(Base64(a)))
	composed := func() *Attachment { return ComposedAttachment("a.eml", MIME([]byte(encoded))) }
	for name, body := range map[string]*Body{
		"JSON without files":       JSON(map[string]string{"a": Base64(a)}),
		"JSON with another file":   JSON([]string{Base64(a), Base64(b)}, b),
		"form":                     Form(url.Values{"a": {Base64(a)}}),
		"text":                     Splice("text/xml", []byte("<a>"+Base64(a)+"</a>")),
		"bytes":                    Bytes("text/plain", []byte(Base64(a))),
		"multipart":                Multipart(FormPart{Name: "a", Value: Base64(a)}),
		"mail":                     MIME([]byte("x\r\n\r\n" + encoded)),
		"mail in a body":           File("", composed()),
		"mail with another file":   MIME([]byte(encoded), b),
		"plain text within a mail": MIME([]byte(Base64(a)), a),
	} {
		if _, err := body.WriteTo(new(bytes.Buffer)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var hits atomic.Int32
	base := target(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	d, err := Parse(base+"/tok", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{pool: egress.NewPool("test"), target: d, options: d.options}
	if err := c.PostJSON(t.Context(), d.service.(*probe).URL("x"), Base64(a)); err == nil || hits.Load() != 0 {
		t.Errorf("%v after %d requests", err, hits.Load())
	}
}

// TestUnreadableFileInForm checks that a file that can no longer be read is an
// error if the length of the form depends on it.
func TestUnreadableFileInForm(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	a := NewAttachmentAt("a.bin", "", 2<<20, nil, f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Form(url.Values{"a": {Base64(a)}}, a).WriteTo(new(bytes.Buffer)); err == nil {
		t.Error("no error")
	}
}
