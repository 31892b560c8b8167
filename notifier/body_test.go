package notifier

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// A file in a body is encoded as its place wants it, and the length is known
// before.
func TestFilesInBodies(t *testing.T) {
	write := func(b *Body) string {
		var out bytes.Buffer
		for range 2 { // it can be read again
			out.Reset()
			n, err := b.WriteTo(&out)
			if err != nil || n != b.Size() || n != int64(out.Len()) {
				t.Errorf("%d bytes were written of a body that has %d: %v", n, b.Size(), err)
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

// A file that cannot be read any more spoils the body that needs it.
func TestUnreadableFileInForm(t *testing.T) {
	spool := &Spool{MaxSize: 4 << 20, MaxCount: 1, Dir: t.TempDir()}
	a, err := spool.Add("a.bin", "", strings.NewReader(strings.Repeat("x", 2<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if err := spool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Form(url.Values{"a": {Base64(a)}}, a).WriteTo(new(bytes.Buffer)); err == nil {
		t.Error("no error")
	}
}
