package device

import (
	"slices"
	"strings"
	"unicode"
)

// searchWords are the words with which people search for their own phone or browser.
var searchWords = []string{
	"phone", "this phone", "my phone", "iphone", "ipad", "android", "smartphone", "mobile", "tablet", "browser", "this browser", "device",
	"this device",
	"push", "web push", "push notification", "desktop", "notification", "chrome", "firefox", "safari",
}

// minSearch is the minimum length of a prefix that matches a word.
const minSearch = 3

// IsMeant reports whether a search text means a phone or a browser, which the gateway reaches
// without a service.
func IsMeant(text string) bool {
	word := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }), " ")
	return len(word) >= minSearch && slices.ContainsFunc(searchWords,
		func(w string) bool { return strings.HasPrefix(w, word) || w+"s" == word })
}
