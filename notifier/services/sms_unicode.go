package services

import (
	"slices"
	"unicode"

	"github.com/linxGnu/gosmpp/data"
)

// smsUnicode says whether a text has characters that the alphabet of text
// messages (GSM 03.38) does not have, not even in its extension. Gateways that
// have to be told replace such characters or leave them out otherwise. Of ASCII
// that are the backtick and control characters only, which are not worth the 90
// of 160 characters that Unicode takes from a message.
func smsUnicode(text string) bool {
	return slices.ContainsFunc(data.ValidateGSM7String(text), func(r rune) bool { return r > unicode.MaxASCII })
}
