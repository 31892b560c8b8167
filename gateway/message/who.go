package message

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Who is who asks for something, as others are told.
type Who struct {
	User  string // whom the server has authenticated; "" for nobody
	Typed string // a name that somebody has typed in, which counts without a user
}

// String returns the name in one line; "" if none is known. A name that was typed in cannot pass for
// that of a user.
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
