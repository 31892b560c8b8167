package caddyhttp

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// pushOptions are the global options with which devices of tests can subscribe.
func pushOptions(more string) string {
	return "public_url https://alerts.example.com\negress {\nallow 127.0.0.0/8\n}\n" +
		"push {\ncontact mailto:ops@example.com\nservices 127.0.0.1\n" + more + "\n}\n"
}

// askJSON sends a request with JSON.
func askJSON(t *testing.T, h *Handler, method, target string, body any, header ...string) reply {
	t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	r := httptest.NewRequest(method, target, strings.NewReader(text))
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Accept", typeJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, h, r)
}

// invited returns the token of an invitation to the key k of the app.
func invited(t *testing.T, h *Handler, tags ...string) string {
	t.Helper()
	k := h.api.Resolved.Keys["k"]
	token, _, err := h.app.gateway.Rooms.Devices.Invitations.Make(t.Context(), h.api.Devices.DevicePlace(k), tags)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
