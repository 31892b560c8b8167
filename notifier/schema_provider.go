package notifier

import (
	"errors"
	"slices"
	"strings"
)

// A Provider is where people have accounts of a service, such as Gmail for e-mail. Its URL
// follows from the address and the password of an account.
type Provider struct {
	Name  string   `json:"name"`
	Words []string `json:"words,omitempty"` // that find it, besides its name, in lower case

	// Domains are those of its addresses, the usual one first.
	Domains []string `json:"domains"`

	// AnyDomain reports whether its accounts may have addresses of other domains, too.
	AnyDomain bool `json:"any_domain,omitempty"`

	// Password is what the provider calls the password that it gives programs, as in "App
	// password". Setup is a sentence on where it is made.
	Password string `json:"password,omitempty"`
	Setup    string `json:"setup,omitempty"`

	// Closed says what to do instead if the provider accepts no password of a program. It
	// is a sentence without its point, or "".
	Closed string `json:"closed,omitempty"`

	// Texts returns the values of the service's form for an account with an address, which
	// consists of local and domain, but for its password. The parameter of that is password.
	Texts func(local, domain string) map[string][]string `json:"-"`
}

// Providers declares where people have accounts of the service. A search finds the service by
// their names and words.
func (s *Schema) Providers(providers ...Provider) {
	for _, p := range providers {
		if p.Closed == "" && (p.Texts == nil || len(p.Domains) == 0 || p.Password == "" || p.Setup == "") {
			panic(s.Name + ": the provider " + p.Name + " lacks something")
		}
		s.providers = append(s.providers, p)
	}
}

// allWords returns the words that find the service, with those of its providers that are open.
func (d *description) allWords() []string {
	words := slices.Clip(d.words)
	for _, p := range d.providers {
		if p.Closed != "" {
			continue
		}
		words = append(append(words, strings.ToLower(p.Name)), p.Words...)
	}
	return words
}

// provider returns the provider that is open and whose name or word has these letters, or nil.
func (d *description) provider(word string) *Provider {
	for i, p := range d.providers {
		isWord := func(w string) bool { return letters(w) == word }
		if p.Closed == "" && (isWord(p.Name) || slices.ContainsFunc(p.Words, isWord)) {
			return &d.providers[i]
		}
	}
	return nil
}

// providerOf returns the provider that has a domain of its own in an address, or nil.
func (d *description) providerOf(address string) *Provider {
	_, domain, _ := strings.Cut(address, "@")
	i := slices.IndexFunc(d.providers, func(p Provider) bool { return slices.Contains(p.Domains, strings.ToLower(domain)) })
	if i < 0 {
		return nil
	}
	return &d.providers[i]
}

// FindProvider returns the provider of a service by its name or a word for it, or nil if there
// is none that accepts a password.
func (i *ServiceInfo) FindProvider(name string) *Provider {
	return (&description{providers: i.Providers}).provider(letters(name))
}

// Values returns the values of the service's form for an account.
func (p *Provider) Values(address, password string) (v URLValues, err error) {
	local, domain, _ := strings.Cut(address, "@")
	switch {
	case p.Closed != "":
		return v, errors.New(p.Closed)
	case !isEmail(address):
		return v, errors.New("it is no e-mail address; write it as you@" + p.Domains[0])
	case !p.AnyDomain && !slices.Contains(p.Domains, strings.ToLower(domain)):
		return v, errors.New("it is no address of " + p.Name + "; these end with @" + strings.Join(p.Domains, ", @"))
	}
	v.Texts = p.Texts(local, strings.ToLower(domain))
	v.Texts["password"] = []string{password}
	return v, nil
}
