package smtpd

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/smtp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// Recipient is a recipient of a mail: KEY[.TYPE][+TAG]@host. The host can be any
// name.
type Recipient struct {
	Key  string
	Type notifier.Type    // type of the message; "" if the address names none
	Tags notifier.TagExpr // empty for none

	// Named means that the client's account names the key.
	Named bool
}

// Distinct returns the recipients of a mail with the types of its messages, without repeating a
// message to the same destinations. typ is the type that the mail itself states.
func Distinct(to []Recipient, typ notifier.Type) (out []Recipient) {
	for _, r := range to {
		// The end of a problem is a success at every address. Otherwise the address decides the
		// type before the subject.
		if r.Type == "" || typ == notifier.Success {
			r.Type = typ
		}
		if !slices.ContainsFunc(out, r.same) {
			out = append(out, r)
		}
	}
	return out
}

// same reports whether r and o get the same message at the same destinations.
func (r Recipient) same(o Recipient) bool {
	tags := func(e notifier.TagExpr) string {
		return strings.Join(slices.Sorted(strings.SplitSeq(e.String(), ",")), ",")
	}
	return r.Key == o.Key && r.Type == o.Type && tags(r.Tags) == tags(o.Tags)
}

// parseRecipient parses the address of a recipient. It ignores the host.
func parseRecipient(address string) (r Recipient, err *smtp.SMTPError) {
	local := address
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		local = address[:i]
	}
	local, tag, hasTag := strings.Cut(local, "+")
	name, word, hasType := strings.Cut(local, ".")
	if !keyName.MatchString(name) {
		return r, errKey
	}
	r.Key = name
	if hasType {
		var known bool
		if r.Type, known = typeword.TypeOf(word); !known || word == "" {
			return r, newAnswer(550, 5, 1, 3, "the word after the dot is not a type; write KEY.failure@host, or success, warning, info, or a "+
				"word such as firing or resolved")
		}
	}
	if hasTag {
		var parseErr error
		r.Tags, parseErr = notifier.ParseTags(tag)
		switch {
		case parseErr != nil:
			return r, newAnswer(550, 5, 1, 3, "the tag after the +: %w", parseErr)
		case r.Tags.Empty():
			return r, newAnswer(550, 5, 1, 3, "the tag after the + is missing; write KEY+tag@host, or leave the + out")
		}
	}
	return r, nil
}

// keyName matches the names of keys.
var keyName = lazyregexp.New(`^[A-Za-z0-9_-]{1,128}$`)

// errKey is the answer for an unknown key. It does not repeat the key, which may be a mistyped
// password.
var errKey = newAnswer(550, 5, 1, 1, "there is no such key; %s; the recipient is KEY@host, with a key of the global option notify",
	site.CheckKey)
