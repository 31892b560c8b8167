package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct {
		accept []string
		want   string // for any request but JSON
	}{
		{nil, mediaText},
		{[]string{""}, mediaText},
		{[]string{"*/*"}, mediaText},
		{[]string{"application/json"}, mediaJSON},
		{[]string{"Application/JSON; charset=utf-8"}, mediaJSON},
		{[]string{"text/html"}, mediaHTML},
		{[]string{"text/*"}, mediaText},
		{[]string{"application/*"}, mediaJSON},
		{[]string{"image/png"}, mediaText},
		{[]string{"image/png", "application/json"}, mediaJSON},
		{[]string{"application/json, text/plain, */*"}, mediaJSON},
		{[]string{"text/plain, application/json"}, mediaText},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, mediaHTML},
		{[]string{"text/html;q=0.5, application/json;q=0.9"}, mediaJSON},
		{[]string{"text/html;q=0.5, application/json; q = 0.4"}, mediaHTML},
		{[]string{"*/*, application/json"}, mediaJSON},
		{[]string{"application/json;q=0.5, */*;q=0.8"}, mediaText},
		{[]string{"text/plain;q=0, */*"}, mediaJSON},
		{[]string{"text/plain;q=0, application/json;q=0, */*;q=0.1"}, mediaHTML},
		{[]string{"application/json;q=0"}, mediaText},
		{[]string{"*/*;q=0"}, mediaText},
		{[]string{"application/json;q=2, text/html;q=x, text/plain;q=nan"}, mediaText},
		{[]string{"application/jsonfoo"}, mediaText},
		{[]string{`text/html;x="a,application/json;q=1";q=0.3, application/json;q=0.2`}, mediaHTML},
		{[]string{",;q=1,/,*/json,json"}, mediaText},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", nil)
		r.Header["Accept"] = tt.accept
		if got := negotiate(r); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.accept, got, tt.want)
		}
	}
}

// TestNegotiateJSON checks that a JSON request is answered in JSON by clients that
// accept everything alike, and otherwise as any other.
func TestNegotiateJSON(t *testing.T) {
	for _, tt := range []struct{ accept, want string }{
		{"*/*", mediaJSON},
		{"*/*;q=0.1", mediaJSON},
		{"image/png, */*", mediaJSON},
		{"*/*, text/html;q=0.5", mediaJSON},
		{"", mediaText},
		{" ", mediaText},
		{"text/plain, */*", mediaText},
		{"text/*", mediaText},
		{"text/plain, application/json", mediaText},
		{"*/*, application/json;q=0.5", mediaText},
		{"text/html, */*;q=0.8", mediaHTML},
		{"image/png", mediaText},
		{"*/*;q=0", mediaText},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", nil)
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		r.Header.Set("Accept", tt.accept)
		if got := negotiate(r); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.accept, got, tt.want)
		}
	}
}
