package caddyhttp

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

const managed = "console {\nmanage open\n}\n"

// askIncident makes a request to the page of an incident.
func askIncident(t *testing.T, h *Handler, method, id, form string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, site.RouteIncidents+"/"+id, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// alertForm returns a form with a message about an incident.
func alertForm(typ, text, incident string) string {
	return fmt.Sprintf("type=%s&body=%s&incident=%s", typ, text, incident)
}
