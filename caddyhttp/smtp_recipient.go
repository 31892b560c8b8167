package caddyhttp

import (
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailRecipient is a recipient of a mail: KEY[.TYPE][+TAG]@host.
type mailRecipient struct {
	key  string
	typ  notifier.Type
	tags notifier.TagExpr
}

// parseMailRecipient parses the address of a recipient. It ignores the host.
func parseMailRecipient(address string) (r mailRecipient, err *smtp.SMTPError) {
	local := address
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		local = address[:i]
	}
	local, tag, hasTag := strings.Cut(local, "+")
	name, word, hasType := strings.Cut(local, ".")
	if !isKeyName(name) {
		return r, errMailKey
	}
	r.key, r.typ = name, notifier.Info
	if hasType {
		var known bool
		if r.typ, known = notifier.TypeOfWord(word); !known || word == "" {
			return r, mailError(550, 5, 1, 3, "the word after the dot is not a type; write KEY.failure@host, or success, warning, info, or a word such as firing or resolved")
		}
	}
	if hasTag {
		var parseErr error
		r.tags, parseErr = notifier.ParseTags(tag)
		switch {
		case parseErr != nil:
			return r, mailError(550, 5, 1, 3, "the tag after the +: %w", parseErr)
		case r.tags.Empty():
			return r, mailError(550, 5, 1, 3, "the tag after the + is missing; write KEY+tag@host, or leave the + out")
		}
	}
	return r, nil
}

// errMailKey is the answer for an unknown key. It does not show the key, because
// that may be a mistyped password.
var errMailKey = mailError(550, 5, 1, 1, "there is no such key; the recipient is KEY@host, with a key of the global option notify")
