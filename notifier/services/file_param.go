package services

import (
	"encoding/base64"
	"errors"
	"strings"
)

// decodeFileParam returns the content of a file from the value of a parameter. PEM
// and JSON are taken as they are, anything else is base64. A URL cannot contain the
// path of a file, because then every client could read any file of this machine.
func decodeFileParam(s string) ([]byte, error) {
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "-----BEGIN ") {
		return []byte(s), nil
	}
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	data, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
	if err != nil || len(data) == 0 {
		return nil, errors.New("must be the content of the file in base64, not its path")
	}
	return data, nil
}

// checkFileParam returns an error if [decodeFileParam] cannot read s.
func checkFileParam(s string) (string, error) {
	_, err := decodeFileParam(s)
	return s, err
}
