package smtpd

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/smtp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

// Recipient is a recipient of a mail: KEY[.TYPE][+TAG]@host. The host can be any
// name.
type Recipient struct {
	Key  string
	Type notifier.Type    // of the message; "" if the address does not name it
	Tags notifier.TagExpr // empty for none

	// Named means that the client has logged in to an account that names the key.
	Named bool
}

// Distinct returns the recipients of a mail with the types of its messages, each message to the same
// destinations once. typ is the type that the mail itself states.
func Distinct(to []Recipient, typ notifier.Type) (out []Recipient) {
	for _, r := range to {
		// What is over is a success wherever it is sent. How bad a problem is, the address
		// knows better than the subject.
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
			return r, newAnswer(550, 5, 1, 3, "the word after the dot is not a type; write KEY.failure@host, or success, warning, info, or a word such as firing or resolved")
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

// keyName matches names that a key can have.
var keyName = lazyregexp.New(`^[A-Za-z0-9_-]{1,128}$`)

// errKey is the answer for an unknown key. It does not show the key, because
// that may be a mistyped password.
var errKey = newAnswer(550, 5, 1, 1, "there is no such key; the recipient is KEY@host, with a key of the global option notify")
