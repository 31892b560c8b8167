package message

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Who is who asks for something, under the name that others see.
type Who struct {
	User  string // the authenticated user; "" for nobody
	Typed string // a typed name, which is used without a user
}

// String returns the name in one line, or "" if unknown. A typed name cannot be confused with a
// user.
func (w Who) String() string {
	typed := PersonOf(w.Typed)
	if typed != "" {
		typed += " (typed)"
	}
	return cmp.Or(PersonOf(w.User), typed)
}

// maxPerson is the maximum length of a name, in bytes.
const maxPerson = 64

// PersonOf returns the name of a person in one line.
func PersonOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return markup.TruncateBytes(strings.Join(strings.Fields(name), " "), maxPerson)
}
