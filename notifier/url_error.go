package notifier

import (
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/loginurl"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// URLError describes what is wrong with a notification URL. It contains no more of the URL than the
// scheme, so that it can be shown and logged.
type URLError struct {
	Service string // the name of the service; "" if the URL has none
	Param   string // the parameter that is wrong; "" if no single parameter is wrong
	Problem string // what is wrong
	Fix     string // what to write instead; may be ""

	// Retired means that Apprise has or had the service, and nothing is wrong
	// with the URL, but the service cannot be used any more or not on a server.
	Retired bool

	// Unknown means that no service has the scheme of the URL.
	Unknown bool
}

func (e *URLError) Error() string {
	text := e.Problem
	if e.Service != "" {
		text = e.Service + ": " + text
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// errMissing returns the error for a required parameter without a value. t is
// the template that the URL was read by, or nil.
func (s *Schema) errMissing(p *Param, t *urlsyntax.Template) error {
	e := &URLError{Service: s.Name, Param: p.name, Problem: p.described() + " is missing"}
	switch {
	case t == nil || !t.Has(p.name):
		e.Fix = "add " + p.name + "=… to the query of the URL"
	default:
		e.Fix = "write " + t.Text
	}
	return e
}

// errValue returns the error for a value that p does not take.
func (s *Schema) errValue(p *Param, problem string) error {
	e := &URLError{Service: s.Name, Param: p.name, Problem: problem}
	if p.example != nil && (p.kind == KindString || p.kind == KindList || p.kind == KindFile) {
		e.Fix = "write for example " + p.example[0]
	}
	return e
}

// errForm returns the error for a URL that fits no template.
func (s *Schema) errForm(scheme string) error {
	var texts []string
	for _, t := range s.templates {
		if _, ok := t.Scheme(scheme); ok {
			texts = append(texts, t.Text)
		}
	}
	return &URLError{
		Service: s.Name, Problem: "the URL has parts that the service's URLs do not have",
		Fix: "write " + strings.Join(texts, " or "),
	}
}

// withLoginRemedy returns err, the error of [Parse] for a URL. If the cause is that the
// password has a character at which a URL is divided, it returns an error that says so.
func withLoginRemedy(text string, err error) error {
	e, ok := errors.AsType[*URLError](err)
	if !ok || e.Retired {
		return err
	}
	encoded, ok := loginurl.Encode(text)
	if !ok {
		return err
	}
	if _, again := parse(encoded); again != nil {
		return err
	}
	return &URLError{
		Service: e.Service, Param: "password",
		Problem: "the password before the @ has a / or a ?, at which the rest of a URL begins",
		Fix:     "write %2F for a / in the password, and %3F for ?, %23 for #, %40 for @",
	}
}
