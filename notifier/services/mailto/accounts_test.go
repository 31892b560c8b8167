package mailto

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestProviders checks the URL that the address and the password of an account at each
// provider make, with the server and the user name that the provider expects.
func TestProviders(t *testing.T) {
	email := notifier.FindService("mailto")
	tried := map[string]bool{}
	for address, want := range map[string]struct{ provider, url, host, user string }{
		"you@gmail.com":      {"gmail", "mailtos://you:pa%2Fss@gmail.com", "smtp.gmail.com", "you@gmail.com"},
		"You@Googlemail.com": {"Google Mail", "mailtos://You%40googlemail.com:pa%2Fss@googlemail.com?smtp=smtp.gmail.com", "smtp.gmail.com", "You@googlemail.com"},
		"you@example.org":    {"google workspace", "mailtos://you%40example.org:pa%2Fss@example.org?smtp=smtp.gmail.com", "smtp.gmail.com", "you@example.org"},
		"you@icloud.com":     {"icloud", "mailtos://you:pa%2Fss@icloud.com?smtp=smtp.mail.me.com", "smtp.mail.me.com", "you"},
		"you@fastmail.com":   {"fastmail", "mailtos://you:pa%2Fss@fastmail.com", "smtp.fastmail.com", "you@fastmail.com"},
		"you@example.net":    {"proton", "mailtos://you%40example.net:pa%2Fss@example.net?smtp=smtp.protonmail.ch", "smtp.protonmail.ch", "you@example.net"},
		"you@gmx.net":        {"gmx", "mailtos://you%40gmx.net:pa%2Fss@gmx.net?smtp=mail.gmx.net", "mail.gmx.net", "you@gmx.net"},
		"you@gmx.com":        {"gmx", "mailtos://you:pa%2Fss@gmx.com", "mail.gmx.com", "you@gmx.com"},
		"you@web.de":         {"web.de", "mailtos://you%40web.de:pa%2Fss@web.de?smtp=smtp.web.de", "smtp.web.de", "you@web.de"},
		"you@yahoo.com":      {"yahoo", "mailtos://you:pa%2Fss@yahoo.com", "smtp.mail.yahoo.com", "you@yahoo.com"},
		"you@yahoo.de":       {"yahoo mail", "mailtos://you%40yahoo.de:pa%2Fss@yahoo.de?smtp=smtp.mail.yahoo.com", "smtp.mail.yahoo.com", "you@yahoo.de"},
		"you@zoho.com":       {"zoho", "mailtos://you:pa%2Fss@zoho.com", "smtp.zoho.com", "you@zoho.com"},
	} {
		p := email.FindProvider(want.provider)
		if p == nil {
			t.Errorf("there is no provider %s", want.provider)
			continue
		}
		tried[p.Name] = true
		v, err := p.Values(address, "pa/ss")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		url, problems := notifier.URLForms("mailto")[0].Build(v)
		if len(problems) > 0 || url != want.url {
			t.Errorf("%s: %s, %v, want %s", address, url, problems, want.url)
			continue
		}
		m := describe(t, url)
		if a := m.findAccount(); a.host != want.host || a.user != want.user || a.password != "pa/ss" || a.mode == modePlain {
			t.Errorf("%s signs in at %s as %s", address, a.host, a.user)
		}
	}
	for _, p := range email.Providers {
		if !tried[p.Name] && p.Closed == "" {
			t.Errorf("%s is not tried", p.Name)
		}
	}
	for address, provider := range map[string]string{"you@gmx.de": "icloud", "you": "gmail", "@gmail.com": "gmail", "": "gmail"} {
		if _, err := email.FindProvider(provider).Values(address, "x"); err == nil {
			t.Errorf("%q is an address of %s", address, provider)
		}
	}
	if found, err := notifier.Recognize("you@hotmail.com"); err != nil || found[0].Provider == nil || found[0].Note != found[0].Provider.Closed {
		t.Errorf("an address of Outlook.com is recognized as %+v, %v", found, err)
	}
}
