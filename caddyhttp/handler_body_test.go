package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// failingBody is a body whose reading ends with an error.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }
func (b failingBody) Close() error             { return nil }

// A request_body directive before this handler has its own limit, and says so
// with an error of its own.
func TestLimitUpstream(t *testing.T) {
	h := newGateway(t, "", "")
	limit := &http.MaxBytesError{Limit: 1}
	for _, err := range []error{limit, caddyhttp.Error(http.StatusRequestEntityTooLarge, limit)} {
		for _, contentType := range []string{typeJSON, typeForm, "multipart/form-data; boundary=x"} {
			r := httptest.NewRequest(http.MethodPost, "/notify", failingBody{err})
			r.ContentLength = 10
			r.Header.Set("Content-Type", contentType)
			if got := do(t, h, r); got.status != 413 {
				t.Errorf("%s, %T: status %d: %s", contentType, err, got.status, got.body)
			}
		}
	}
}
