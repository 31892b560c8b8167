package mailbox_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/mailbox"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// TestProviders checks that the address and the password of an account at each provider make the
// URL in docs/mail-providers.md.
func TestProviders(t *testing.T) {
	for address, want := range map[string]struct{ provider, url string }{
		"you@gmail.com":      {"gmail", "mailtos://you:pa%2Fss@gmail.com"},
		"You@Googlemail.com": {"Google Mail", "mailtos://You%40googlemail.com:pa%2Fss@googlemail.com?smtp=smtp.gmail.com"},
		"you@example.org":    {"google workspace", "mailtos://you%40example.org:pa%2Fss@example.org?smtp=smtp.gmail.com"},
		"you@icloud.com":     {"icloud", "mailtos://you:pa%2Fss@icloud.com?smtp=smtp.mail.me.com"},
		"you@fastmail.com":   {"fastmail", "mailtos://you:pa%2Fss@fastmail.com"},
		"you@example.net":    {"proton", "mailtos://you%40example.net:pa%2Fss@example.net?smtp=smtp.protonmail.ch"},
		"you@gmx.net":        {"gmx", "mailtos://you%40gmx.net:pa%2Fss@gmx.net?smtp=mail.gmx.net"},
		"you@gmx.com":        {"gmx", "mailtos://you:pa%2Fss@gmx.com"},
		"you@web.de":         {"web.de", "mailtos://you%40web.de:pa%2Fss@web.de?smtp=smtp.web.de"},
		"you@yahoo.com":      {"yahoo", "mailtos://you:pa%2Fss@yahoo.com"},
		"you@yahoo.de":       {"yahoo mail", "mailtos://you%40yahoo.de:pa%2Fss@yahoo.de?smtp=smtp.mail.yahoo.com"},
		"you@zoho.com":       {"zoho", "mailtos://you:pa%2Fss@zoho.com"},
	} {
		p := mailbox.Find(want.provider)
		if p == nil {
			t.Errorf("there is no provider %s", want.provider)
			continue
		}
		if err := p.CheckAddress(address); err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		url, problems := notifier.URLForms(mailbox.Scheme)[0].Build(p.Values(address, "pa/ss"))
		if len(problems) > 0 || url != want.url {
			t.Errorf("%s: %s, %v, want %s", address, url, problems, want.url)
		}
	}
	// The page has the same URL for each provider.
	page, err := os.ReadFile("../../docs/mail-providers.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| `mailtos://([^:`]+):[A-Z]+(@[^`?]+)([^`]*)` \\|").FindAllStringSubmatch(string(page), -1)
	checked := 0
	for _, row := range rows {
		address := strings.ReplaceAll(row[2], "%40", "@")
		if !strings.Contains(address, "@") {
			address += row[3]
		}
		for name := range strings.SplitSeq(row[1], ",") {
			name, _, _ = strings.Cut(name, " in ")
			name = strings.TrimSuffix(name, " elsewhere")
			if p := mailbox.Find(name); p != nil {
				checked++
				want := "mailtos://" + row[2] + ":secret" + row[3] + row[4]
				if got, _ := notifier.URLForms(mailbox.Scheme)[0].Build(p.Values(address, "secret")); got != want {
					t.Errorf("%s: the page has %s, and the form makes %s", name, want, got)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("the page has only %d of the providers", checked)
	}
	for address, provider := range map[string]string{"you@gmx.de": "icloud", "you": "gmail", "@gmail.com": "gmail", "": "gmail"} {
		if mailbox.Find(provider).CheckAddress(address) == nil {
			t.Errorf("%q is an address of %s", address, provider)
		}
	}
	if p := mailbox.Of("you@Hotmail.com"); p == nil || p.Closed == "" || mailbox.Find(p.Name) != nil {
		t.Errorf("an address of Outlook.com is of %+v", p)
	}
	if p := mailbox.Of("you@gmail.com"); p == nil || p != mailbox.Find("gmail") || mailbox.Of("you@example.com") != nil {
		t.Errorf("an address of Gmail is of %+v", p)
	}
}
