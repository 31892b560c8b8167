package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCommandCheckSendsNothing checks that the command check sends nothing for
// any service.
func TestCommandCheckSendsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has left") }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, u := range []string{"json://" + host, "form://" + host, "gotify://" + host + "/t0k3nt0k3n", "mqtt://" + host + "/topic"} {
		for _, flag := range []string{"--dry-run=false", "--dry-run"} {
			if out, errs, code := command(t, "", "check", flag, u); code != 0 {
				t.Errorf("%s: exit %d\n%s%s", u, code, out, errs)
			}
		}
	}
}
