package mailto

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// server is where a provider takes mail from accounts of some domains.
type server struct {
	domains string // separated by white space; "*" for any other
	host    string // "" if a URL for the domain needs none
	whole   bool   // the user name is the whole address
}

// texts returns the values of the form for an account of a provider with these servers.
func texts(servers ...server) func(local, domain string) map[string][]string {
	return func(local, domain string) map[string][]string {
		v := map[string][]string{"user": {local}, "host": {domain}}
		for _, s := range servers {
			if s.domains != "*" && !strings.Contains(" "+s.domains+" ", " "+domain+" ") {
				continue
			}
			if s.host != "" {
				v["smtp"] = []string{s.host}
			}
			if s.whole {
				v["user"] = []string{local + "@" + domain}
			}
			break
		}
		return v
	}
}

const appPassword = "App password"

// describeProviders declares the providers of docs/mail-providers.md.
func describeProviders(s *notifier.Schema) {
	const outlook = "Outlook.com and Hotmail accept no password of a program; send with Office 365 (azure://), which signs in by Microsoft Graph"
	s.Providers(
		notifier.Provider{
			Name: "Gmail", Words: []string{"google mail", "google workspace"}, Domains: []string{"gmail.com", "googlemail.com"}, AnyDomain: true, Password: appPassword,
			Setup: "Turn on 2-Step Verification, then open App passwords in the Google Account, at myaccount.google.com/apppasswords.",
			Texts: texts(server{"gmail.com", "", false}, server{"*", "smtp.gmail.com", true}),
		},
		notifier.Provider{
			Name: "iCloud", Words: []string{"apple mail", "icloud mail"}, Domains: []string{"icloud.com", "me.com", "mac.com"}, Password: "App-specific password",
			Setup: "It is at account.apple.com, Sign-In and Security, App-Specific Passwords.",
			Texts: texts(server{"*", "smtp.mail.me.com", false}),
		},
		notifier.Provider{
			Name: "Fastmail", Domains: []string{"fastmail.com", "fastmail.fm"}, AnyDomain: true, Password: appPassword,
			Setup: "It is in Settings, Privacy & Security, App passwords, with access to SMTP.",
			Texts: texts(server{"fastmail.com fastmail.fm", "", false}, server{"*", "smtp.fastmail.com", true}),
		},
		notifier.Provider{
			Name: "Proton Mail", Words: []string{"proton"}, Domains: []string{"example.com"}, AnyDomain: true, Password: "SMTP token",
			Setup: "It is in Settings, IMAP/SMTP, SMTP tokens. It needs a paid plan and an address of your own domain.",
			Texts: texts(server{"*", "smtp.protonmail.ch", true}),
		},
		notifier.Provider{
			Name: "GMX", Domains: []string{"gmx.com", "gmx.net", "gmx.de", "gmx.at", "gmx.ch", "gmx.fr"}, Password: "Password",
			Setup: "Allow POP3 and IMAP in the settings of the mailbox first. With two-factor login, make an app password in the security settings; without it, the password of the mailbox works.",
			Texts: texts(server{"gmx.net gmx.de gmx.at gmx.ch", "mail.gmx.net", true}),
		},
		notifier.Provider{
			Name: "web.de", Domains: []string{"web.de"}, Password: "Password",
			Setup: "Allow POP3 and IMAP in the settings of the mailbox first. With two-factor login, make an app password in the security settings; without it, the password of the mailbox works.",
			Texts: texts(server{"*", "smtp.web.de", true}),
		},
		notifier.Provider{
			Name: "Yahoo", Words: []string{"yahoo mail"}, Domains: []string{"yahoo.com", "yahoo.ca", "yahoo.co.uk", "yahoo.de", "yahoo.fr", "yahoo.es", "yahoo.it"}, Password: appPassword,
			Setup: "It is in the account security of the account, App passwords.",
			Texts: texts(server{"yahoo.com yahoo.ca", "", false}, server{"*", "smtp.mail.yahoo.com", true}),
		},
		notifier.Provider{
			Name: "Zoho Mail", Words: []string{"zoho"}, Domains: []string{"zoho.com", "zohomail.com"}, Password: appPassword,
			Setup: "It is in the account security of the account, App passwords.",
			Texts: texts(),
		},
		notifier.Provider{
			Name: "Outlook.com", Domains: []string{"outlook.com", "hotmail.com", "live.com", "msn.com"}, Closed: outlook,
		},
	)
}
