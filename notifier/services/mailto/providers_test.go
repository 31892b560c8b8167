package mailto

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"testing"
)

// TestProvidersPage checks the servers, ports and user names in docs/mail-providers.md: they are those to
// which the URL of the row leads, over TLS. The tests in docs/ parse the URLs.
func TestProvidersPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/mail-providers.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| `(mailtos://[^`]+)` \\| `([^`]+)` \\| `([^`]+)` \\|$").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("the page has only %d providers", len(rows))
	}
	for _, row := range rows {
		u, err := url.Parse(row[2])
		if err != nil {
			t.Fatal(err)
		}
		m := &service{smtp: u.Query().Get("smtp"), mode: u.Query().Get("mode")}
		m.User, m.Host, m.Secure = u.User.Username(), u.Hostname(), u.Scheme == "mailtos"
		m.Password, _ = u.User.Password()
		a := m.findAccount()
		if got := fmt.Sprintf("%s:%d", a.host, a.port); got != row[3] || a.user != row[4] || a.mode == modePlain {
			t.Errorf("%s: %s (%s) as %s, want %s as %s", row[1], got, a.mode, a.user, row[3], row[4])
		}
	}
}
