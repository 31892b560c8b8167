package notifier

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAttachmentType(t *testing.T) {
	for _, tt := range []struct{ name, given, data, want string }{
		{"a.png", "", "x", "image/png"},
		{"a.png", "application/octet-stream", "x", "image/png"},
		{"a.png", "text/plain; charset=utf-8", "x", "text/plain; charset=utf-8"},
		{"a", "", "\x89PNG\r\n\x1a\n", "image/png"},
		{"a", "nonsense", "hello", "text/plain"},
		{"a", "", "\x00\x01", "application/octet-stream"},
	} {
		if got := NewAttachment(tt.name, tt.given, []byte(tt.data)).ContentType; got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// TestContentType checks that a client's content type is sent if it is valid,
// and replaced otherwise.
func TestContentType(t *testing.T) {
	for given, want := range map[string]string{
		"text/plain; charset=utf-8":                 "text/plain; charset=utf-8",
		"text/plain;charset=utf-8":                  "text/plain; charset=utf-8",
		"Image/PNG":                                 "image/png",
		"multipart/x; boundary=\"a b\"":             "multipart/x; boundary=\"a b\"",
		"text/plain;\r\n\r\nX-Evil=1":               "text/plain; x-evil=1",
		"text/plain\r\n":                            "text/plain",
		"text/plain; a=\"b\r\nX-Evil: 1\"":          "image/gif",
		"text/plain; a=" + strings.Repeat("b", 255): "image/gif", // detected
		"text/" + strings.Repeat("b", 255):          "image/gif",
		"text":                                      "image/gif",
	} {
		if got := NewAttachment("a.gif", given, nil).ContentType; got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

func TestAttachmentName(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt": "a.txt", "../../etc/passwd": "passwd", `C:\temp\x.log`: "x.log", "": "attachment-7", "..": "attachment-7",
		"a\r\nContent-Type: x": "aContent-Type: x", "a\x00b": "ab", "/": "attachment-7", "\u202egnp.exe": "gnp.exe",
		strings.Repeat("é", 300) + ".png": strings.Repeat("é", 246) + ".png",
	} {
		if got := AttachmentName(in, 7); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestNameByType checks that a file has a name by its type, unless it has an extension.
func TestNameByType(t *testing.T) {
	const png, jpg = "\x89PNG\r\n\x1a\n", "\xFF\xD8\xFF\xE0"
	for _, test := range []struct{ name, contentType, content, want string }{
		{"snap", "image/jpeg", "", "snap.jpg"},
		{"snap", "image/jpg; q=1", "", "snap.jpg"},
		{"snap", "", png, "snap.png"},
		{"snap", "application/octet-stream", jpg, "snap.jpg"},
		{"snap.", "image/jpeg", "", "snap.jpg"},
		{"front door 2026-11-28 12.30.45", "image/jpeg", "", "front door 2026-11-28 12.30.45.jpg"},
		{"1. of May", "application/pdf", "", "1. of May.pdf"},
		{"report", "text/csv; charset=utf-8", "", "report.csv"},
		{"log", "", "a text", "log.txt"},
		{"a.jpeg", "image/jpeg", "", "a.jpeg"},
		{"a.png", "image/jpeg", "", "a.png"},
		{"a.7z", "application/octet-stream", "", "a.7z"},
		{".profile", "text/plain", "", ".profile"},
		{"core", "application/octet-stream", "\x00\x01", "core"},
		{"attachment", "application/octet-stream", "\x00\x01", "attachment.bin"},
		{"attachment-2", "", jpg, "attachment-2.jpg"},
		{"x", "application/vnd.api+json", "", "x.json"},
	} {
		if got := NewAttachment(test.name, test.contentType, []byte(test.content)).Name; got != test.want {
			t.Errorf("%s, %s: got %s, want %s", test.name, test.contentType, got, test.want)
		}
	}
	for _, test := range [][3]string{
		{"snap.cgi", "image/jpeg", "snap.cgi.jpg"},
		{"video.php", "video/mp4; codecs=x", "video.php.mp4"},
		{"a.png", "image/jpeg", "a.png"},
		{"a.cgi", "text/html", "a.cgi"},
		{"snap", "image/jpeg", "snap"},
		{"a.jpg", "", "a.jpg"},
		{"a.heic", "image/heic", "a.heic"},
	} {
		if got := TypeName(test[0], test[1]); got != test[2] {
			t.Errorf("%s, %s: got %s, want %s", test[0], test[1], got, test[2])
		}
	}
	a := NewAttachment("a.jpg", "image/jpeg", nil)
	if a.Rename("b"); a.Name != "b.jpg" {
		t.Errorf("renamed: %s", a.Name)
	}
}

// TestAttachments checks that ten destinations read a large file from one copy.
func TestAttachments(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	want := sha256.Sum256(content)
	var good atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		hash := sha256.New()
		_, _ = io.Copy(hash, f)
		if [32]byte(hash.Sum(nil)) == want && h.Filename == "log.bin" {
			good.Add(1)
		}
	})
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
	}
	m := *hello
	m.Attachments = []*Attachment{NewAttachmentAt("log.bin", "", int64(len(content)), nil, f)}
	if report := send(t, newTestSender(t), &m, Options{}, urls...); !report.OK() || good.Load() != 10 {
		t.Errorf("%d of 10 got the file: %v", good.Load(), report.Results)
	}
}
