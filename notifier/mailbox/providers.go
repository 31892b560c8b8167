package mailbox

// server is where a provider takes mail from accounts of some domains.
type server struct {
	domains string // separated by white space; "*" for any other
	host    string // "" if a URL for the domain needs none
	whole   bool   // the user name is the whole address
}

// usualPassword is most providers' name for the password of a program.
const usualPassword = "App password"

// providers are the providers in docs/mail-providers.md.
var providers = []Provider{
	{
		Name: "Gmail", Words: []string{"google mail", "google workspace"},
		Domains: []string{"gmail.com", "googlemail.com"}, AnyDomain: true, Password: usualPassword,
		Setup:   "Turn on 2-Step Verification, then open App passwords in the Google Account, at myaccount.google.com/apppasswords.",
		servers: []server{{"gmail.com", "", false}, {"*", "smtp.gmail.com", true}},
	},
	{
		Name: "iCloud", Words: []string{"apple mail", "icloud mail"},
		Domains: []string{"icloud.com", "me.com", "mac.com"}, Password: "App-specific password",
		Setup:   "It is at account.apple.com, Sign-In and Security, App-Specific Passwords.",
		servers: []server{{"*", "smtp.mail.me.com", false}},
	},
	{
		Name: "Fastmail", Domains: []string{"fastmail.com", "fastmail.fm"}, AnyDomain: true, Password: usualPassword,
		Setup:   "It is in Settings, Privacy & Security, App passwords, with access to SMTP.",
		servers: []server{{"fastmail.com fastmail.fm", "", false}, {"*", "smtp.fastmail.com", true}},
	},
	{
		Name: "Proton Mail", Words: []string{"proton"}, AnyDomain: true, Password: "SMTP token",
		Setup:   "It is in Settings, IMAP/SMTP, SMTP tokens. It needs a paid plan and an address of your own domain.",
		servers: []server{{"*", "smtp.protonmail.ch", true}},
	},
	{
		Name: "GMX", Domains: []string{"gmx.com", "gmx.net", "gmx.de", "gmx.at", "gmx.ch", "gmx.fr"}, Password: "Password",
		Setup: "Allow POP3 and IMAP in the settings of the mailbox first. With two-factor login, " +
			"make an app password in the security settings; without it, the password of the mailbox works.",
		servers: []server{{"gmx.net gmx.de gmx.at gmx.ch", "mail.gmx.net", true}},
	},
	{
		Name: "web.de", Domains: []string{"web.de"}, Password: "Password",
		Setup: "Allow POP3 and IMAP in the settings of the mailbox first. With two-factor login, " +
			"make an app password in the security settings; without it, the password of the mailbox works.",
		servers: []server{{"*", "smtp.web.de", true}},
	},
	{
		Name: "Yahoo", Words: []string{"yahoo mail"},
		Domains:  []string{"yahoo.com", "yahoo.ca", "yahoo.co.uk", "yahoo.de", "yahoo.fr", "yahoo.es", "yahoo.it"},
		Password: usualPassword,
		Setup:    "It is in the account security of the account, App passwords.",
		servers:  []server{{"yahoo.com yahoo.ca", "", false}, {"*", "smtp.mail.yahoo.com", true}},
	},
	{
		Name: "Zoho Mail", Words: []string{"zoho"}, Domains: []string{"zoho.com", "zohomail.com"}, Password: usualPassword,
		Setup: "It is in the account security of the account, App passwords.",
	},
	{
		Name: "Outlook.com", Domains: []string{"outlook.com", "hotmail.com", "live.com", "msn.com"},
		Closed: "Outlook.com and Hotmail accept no password of a program; send with Office 365 (azure://), which signs in by Microsoft Graph",
	},
}
