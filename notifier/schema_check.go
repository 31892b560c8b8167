package notifier

import (
	"errors"
	"net/mail"
	"strings"
)

// Phone returns the digits of a telephone number, with a + before them if it has
// one. White space and the characters - . / ( ) are left out. It is an error if
// there are fewer than 3 digits, as short codes have, or more than 15 (ITU-T
// E.164). It is a function for [Param.Normalize].
func Phone(s string) (string, error) {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '+' && i == 0:
			b.WriteRune(r)
		case strings.ContainsRune(" \t-.()/", r):
		default:
			return "", errNotPhone
		}
	}
	if n := len(strings.TrimPrefix(b.String(), "+")); n < 3 || n > 15 {
		return "", errNotPhone
	}
	return b.String(), nil
}

var errNotPhone = errors.New("is not a telephone number")

// FullPhone is like [Phone] for numbers of 10 to 14 digits, which excludes short
// codes. It leaves out the +.
func FullPhone(s string) (string, error) {
	s, err := Phone(s)
	s = strings.TrimPrefix(s, "+")
	if err == nil && (len(s) < 10 || len(s) > 14) {
		err = errors.New("is not a telephone number with its country code")
	}
	return s, err
}

// Email returns s if it is an e-mail address, with or without a name. It is a
// function for [Param.Normalize].
func Email(s string) (string, error) {
	if _, err := mail.ParseAddress(s); err != nil {
		return "", errors.New("is not an e-mail address")
	}
	return s, nil
}
