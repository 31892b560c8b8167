package egress

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
)

// Errors of net/http become what a reader can use, without the URL.
func TestTransportError(t *testing.T) {
	for want, err := range map[string]error{
		"instead of answering": &url.Error{Op: "Get", URL: "http://h/secret", Err: io.EOF},
		"before it was asked":  &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")},
		"refused":              &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("refused")},
	} {
		got := transportError(err).Error()
		if !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "readLoop") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
