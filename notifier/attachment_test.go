package notifier

import (
	"strings"
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
