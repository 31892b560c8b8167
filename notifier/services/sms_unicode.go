package services

import (
	"slices"
	"unicode"

	"github.com/linxGnu/gosmpp/data"
)

// smsUnicode reports whether text has characters that are not in the alphabet of
// text messages (GSM 03.38) and its extension. Some services lose such characters
// unless the request asks for Unicode. ASCII does not count: it lacks only the
// backtick and control characters, and Unicode shortens a message from 160 to 70
// characters.
func smsUnicode(text string) bool {
	return slices.ContainsFunc(data.ValidateGSM7String(text), func(r rune) bool { return r > unicode.MaxASCII })
}
