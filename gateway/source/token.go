package source

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// TokenPlace is a place in a request where a program can put a token.
type TokenPlace struct {
	// Header is the name of a header whose value is the token.
	Header string

	// Scheme is the scheme of an Authorization header whose value is the token, in
	// addition to Bearer.
	Scheme string

	// Query is the name of a parameter of the query string.
	Query string

	// Field is the name of a field of a form or a JSON object.
	Field string

	// Path means that the token is a segment of the path, as in /hooks/TOKEN. The paths
	// of the API say which one.
	Path bool

	// Basic means that the token is the password of Basic authentication, or the user
	// name if the password is empty.
	Basic bool

	// Encoded is the name of a parameter of the query string with the value of an
	// Authorization header in base64.
	Encoded string
}

// usualPlaces are the places of a token for every request, in addition to
// Authorization: Bearer.
var usualPlaces = []TokenPlace{{Query: "token"}, {Header: "X-Gotify-Key"}, {Basic: true}}

// HasToken reports whether a request has a token that match accepts, in one of the
// places that every client may use: Authorization: Bearer, the password of Basic
// authentication, X-Gotify-Key and ?token=.
func HasToken(r *Request, match func(token string) bool) bool {
	return new(Format).HasToken(r, match)
}

// HasToken is like the function HasToken and also looks in the places of the format. Places in the
// body count if the body has been read.
func (f *Format) HasToken(r *Request, match func(token string) bool) bool {
	found := false
	try := func(candidate string) {
		if candidate != "" && match(candidate) {
			found = true
		}
	}
	auth := r.Header.Get("Authorization")
	try(r.Bearer())
	for _, p := range slices.Concat(usualPlaces, f.Tokens) {
		if p.Header != "" {
			try(r.Header.Get(p.Header))
		}
		if p.Scheme != "" {
			try(schemeToken(auth, p.Scheme))
		}
		if p.Query != "" {
			try(r.Query.Get(p.Query))
		}
		if p.Path {
			try(f.API.pathToken(r))
		}
		if p.Basic {
			try(basicPassword(auth))
		}
		if p.Encoded != "" {
			value := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(r.Query.Get(p.Encoded))
			if auth, err := base64.RawStdEncoding.DecodeString(value); err == nil {
				try(schemeToken(string(auth), "Bearer"))
				try(basicPassword(string(auth)))
			}
		}
		if p.Field != "" {
			try(r.Field(p.Field))
		}
	}
	return found
}

// TokenSum returns the hash of the key's token that a request has in a place of the format, or that
// its ticket was made with, or "".
func (f *Format) TokenSum(r *Request, tokens site.Secrets) (sum string) {
	f.HasToken(r, func(token string) bool {
		if !tokens.Has(token) {
			return false
		}
		h := sha256.Sum256([]byte(token))
		sum = string(h[:])
		r.SetTicketSecret(h[:])
		return true
	})
	for i := range tokens {
		if sum == "" && r.HasTicket(tokens[i][:]) {
			sum = string(tokens[i][:])
		}
	}
	return sum
}

// hasToken reports whether a request has the token of the source.
func (s *Source) hasToken(r *Request) bool {
	hash := sha256.Sum256([]byte(s.config.Token))
	if s.Format.HasToken(r, func(token string) bool { return sameSecret(token, s.config.Token) }) {
		r.SetTicketSecret(hash[:])
		return true
	}
	return r.HasTicket(hash[:])
}

// TakesTokenInBody reports whether the body of a request can have the token.
func (f *Format) TakesTokenInBody() bool {
	return slices.ContainsFunc(f.Tokens, func(p TokenPlace) bool { return p.Field != "" })
}

// sameSecret reports whether two secrets are equal, in constant time.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// schemeToken returns the part after a scheme in an Authorization header, or "".
func schemeToken(auth, scheme string) string {
	got, token, ok := strings.Cut(auth, " ")
	if !ok || !strings.EqualFold(got, scheme) {
		return ""
	}
	return strings.TrimSpace(token)
}

// Bearer returns the token in Authorization: Bearer, or "".
func (r *Request) Bearer() string { return schemeToken(r.Header.Get("Authorization"), "Bearer") }

// basicPassword returns the password of Basic authentication, or the user name if the
// password is empty.
func basicPassword(auth string) string {
	scheme, value, ok := strings.Cut(auth, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return ""
	}
	user, password, _ := strings.Cut(string(text), ":")
	if password == "" {
		return user
	}
	return password
}

// Field returns a field of the form or JSON object in the body, or "".
func (r *Request) Field(name string) string {
	if r.Form != nil {
		return r.Form.Get(name)
	}
	if payload.LooksLikeJSON(r.Text()) {
		data, err := payload.Decode(r.Text())
		if err != nil {
			return ""
		}
		return payload.Text(payload.Get(data, name))
	}
	form, err := r.parseForm()
	if err != nil {
		return ""
	}
	return form.Get(name)
}
