package device

import (
	"slices"
	"strings"
	"unicode"
)

// searchWords are what people search for when they mean the phone or the browser that they use.
var searchWords = []string{
	"phone", "this phone", "my phone", "iphone", "ipad", "android", "smartphone", "mobile", "tablet", "browser", "this browser", "device",
	"this device",
	"push", "web push", "push notification", "desktop", "notification", "chrome", "firefox", "safari",
}

// minSearch is the minimum length of the beginning of a word that finds something.
const minSearch = 3

// IsMeant reports whether a text to search a destination for means a phone or a browser, which
// the gateway reaches without a service.
func IsMeant(text string) bool {
	word := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }), " ")
	return len(word) >= minSearch && slices.ContainsFunc(searchWords,
		func(w string) bool { return strings.HasPrefix(w, word) || w+"s" == word })
}
