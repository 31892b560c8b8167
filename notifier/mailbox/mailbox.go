// Package mailbox knows providers of mailboxes, such as Gmail: it derives their URL from the
// address and the password of an account.
package mailbox

import (
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Scheme is the scheme of the URLs of accounts.
const Scheme = "mailto"

// A Provider is where people have mailboxes.
type Provider struct {
	Name  string
	Words []string // that it is also found by, in lower case

	// Domains are the provider's own domains, the usual one first. With AnyDomain, its accounts may
	// have addresses of other domains, too.
	Domains   []string
	AnyDomain bool

	// Password is the provider's name for a password of a program, as in "App password". Setup is a
	// sentence on where it is made.
	Password, Setup string

	// Closed says what to do instead if the provider accepts no password of a program. It is a
	// sentence without its full stop, or "".
	Closed string

	servers []server
}

// Other is any other provider. Its server has the name of the address's domain, unless the
// parameter smtp names another.
var Other = &Provider{
	Name: "E-Mail", AnyDomain: true, Password: "Password",
	Setup: "It is the password of the mail program.", servers: []server{{"*", "", true}},
}

// Find returns the provider with a name, or nil if there is none that accepts passwords.
func Find(name string) *Provider {
	word := letters(name)
	i := slices.IndexFunc(providers, func(p Provider) bool {
		isWord := func(w string) bool { return letters(w) == word }
		return word != "" && p.Closed == "" && (isWord(p.Name) || slices.ContainsFunc(p.Words, isWord))
	})
	if i < 0 {
		return nil
	}
	return &providers[i]
}

// Of returns the provider of an address by its domain, or nil if it is not known.
func Of(address string) *Provider {
	_, domain, _ := strings.Cut(address, "@")
	i := slices.IndexFunc(providers, func(p Provider) bool { return slices.Contains(p.Domains, strings.ToLower(domain)) })
	if i < 0 {
		return nil
	}
	return &providers[i]
}

// letters returns the letters of a name in lower case.
func letters(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) }), "")
}

// appPassword matches an app password with the spaces that Google shows in it.
var appPassword = lazyregexp.New(`^(?:[a-z]{4} ){3}[a-z]{4}$`)

// Example returns an address that an account may have.
func (p *Provider) Example() string {
	if len(p.Domains) == 0 {
		return "you@example.com"
	}
	return "you@" + p.Domains[0]
}

// CheckAddress returns an error if an address cannot belong to an account.
func (p *Provider) CheckAddress(address string) error {
	parsed, err := mail.ParseAddress(address)
	_, domain, _ := strings.Cut(address, "@")
	switch {
	case p.Closed != "":
		return errors.New(p.Closed)
	case err != nil || parsed.Address != address || !strings.Contains(domain, "."):
		return errors.New("it is no e-mail address; write it as " + p.Example())
	case !p.AnyDomain && !slices.Contains(p.Domains, strings.ToLower(domain)):
		return errors.New("it is no address of " + p.Name + "; these end with @" + strings.Join(p.Domains, ", @"))
	}
	return nil
}

// Values returns the values of the form of the service for an account, whose address
// CheckAddress has accepted.
func (p *Provider) Values(address, password string) notifier.URLValues {
	if appPassword.MatchString(password) {
		password = strings.ReplaceAll(password, " ", "")
	}
	local, domain, _ := strings.Cut(address, "@")
	domain = strings.ToLower(domain)
	texts := map[string][]string{"user": {local}, "host": {domain}, "password": {password}}
	i := slices.IndexFunc(p.servers, func(s server) bool { return s.domains == "*" || slices.Contains(strings.Fields(s.domains), domain) })
	if i >= 0 && p.servers[i].host != "" {
		texts["smtp"] = []string{p.servers[i].host}
	}
	if i >= 0 && p.servers[i].whole {
		texts["user"] = []string{local + "@" + domain}
	}
	return notifier.URLValues{Texts: texts}
}
