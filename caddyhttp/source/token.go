package source

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// TokenPlace is a place in a request where a program can put a token.
type TokenPlace struct {
	// Header is the name of a header whose value is the token.
	Header string

	// Query is the name of a parameter of the query string.
	Query string

	// Field is the name of a field of a form or a JSON object.
	Field string

	// Path means that the token is the last segment of the path, as in /hooks/TOKEN.
	Path bool

	// Basic means that the token is the password of Basic authentication, or the user
	// name if the password is empty.
	Basic bool

	// Encoded is the name of a parameter of the query string with the value of an
	// Authorization header in base64.
	Encoded string
}

// usualPlaces are the places of a token for every source, in addition to
// Authorization: Bearer.
var usualPlaces = []TokenPlace{{Query: "token"}}

// hasToken reports whether a request has the token of the source in a place that the
// format allows.
func (s *Source) hasToken(r *Request) bool {
	found := false
	try := func(candidate string) {
		if candidate != "" && sameSecret(candidate, s.config.Token) {
			found = true
		}
	}
	auth := r.Header.Get("Authorization")
	try(bearerToken(auth))
	for _, p := range append(usualPlaces, s.Format.Tokens...) {
		if p.Header != "" {
			try(r.Header.Get(p.Header))
		}
		if p.Query != "" {
			try(r.Query.Get(p.Query))
		}
		if p.Path {
			try(r.Path[strings.LastIndexByte(r.Path, '/')+1:])
		}
		if p.Basic {
			try(basicPassword(auth))
		}
		if p.Encoded != "" {
			value := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(r.Query.Get(p.Encoded))
			if auth, err := base64.RawStdEncoding.DecodeString(value); err == nil {
				try(bearerToken(string(auth)))
				try(basicPassword(string(auth)))
			}
		}
		if p.Field != "" {
			try(r.field(p.Field))
		}
	}
	return found
}

// sameSecret reports whether two secrets are equal, in constant time.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// bearerToken returns the token of Bearer authentication, or "".
func bearerToken(auth string) string {
	scheme, token, ok := strings.Cut(auth, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

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

// field returns a field of the form or JSON object in the body, or "".
func (r *Request) field(name string) string {
	if r.Form != nil {
		return r.Form.Get(name)
	}
	if looksLikeJSON(r.Body) {
		data, err := decodeJSON(r.Body)
		if err != nil {
			return ""
		}
		return text(get(data, name))
	}
	form, err := parseForm(string(r.Body))
	if err != nil {
		return ""
	}
	return form.Get(name)
}
