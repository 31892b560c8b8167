package services

import (
	"errors"
	"regexp"
	"strings"
)

var fileFieldPattern = regexp.MustCompile(`^([A-Za-z0-9_-]*)[*?+$:.%]+([A-Za-z0-9_-]*)$|^[A-Za-z0-9_-]+$`)

// fileField checks the name of a file's field, which may hold a wildcard.
func fileField(s string) (string, error) {
	m := fileFieldPattern.FindStringSubmatch(s)
	switch {
	case m == nil || m[0] != s || len(strings.Trim(s, "*?+$:.%")) == 0:
		return "", errors.New("is not a field name with a * in it")
	case strings.ContainsAny(s, "*?+$:.%"):
		return m[1] + "*" + m[2], nil
	}
	return s, nil
}
