package services

import (
	"encoding/base64"
	"errors"
	"strings"
)

// inlineFile is the content of a file that a URL brings with it, as it stands
// or in base64. A URL does not name a file of the machine: whoever may send a
// URL could have any file read.
func inlineFile(s string) ([]byte, error) {
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "-----BEGIN ") {
		return []byte(s), nil
	}
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	data, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
	if err != nil || len(data) == 0 {
		return nil, errors.New("is not the content of a file in base64; a path is not accepted")
	}
	return data, nil
}

// inlineFileItem checks a parameter that [inlineFile] is to read.
func inlineFileItem(s string) (string, error) {
	_, err := inlineFile(s)
	return s, err
}
