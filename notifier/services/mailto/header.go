package mailto

import (
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// headerValue returns the value of a header field that the URL sets. Addresses
// keep their form, because an encoded word (RFC 2047) may not contain one.
func headerValue(name, value string) string {
	if addressFields.MatchString(name) {
		list := mail.SplitList(mail.OneLine(value))
		out := make([]mail.Address, len(list))
		valid := true
		for i, s := range list {
			var ok bool
			out[i], ok = parseAddress(s)
			valid = valid && ok
		}
		if valid {
			return mail.AddressField(out)
		}
	}
	return mail.EncodeText(value)
}

var addressFields = lazyregexp.New(`(?i)^(from|sender|to|cc|reply-to)$`)
