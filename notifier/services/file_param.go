package services

import (
	"encoding/base64"
	"errors"
	"strings"
)

// decodeFileParam returns the content of a file that a URL has in place of a path.
// PEM and JSON are taken as they are, anything else is base64.
func decodeFileParam(s string) ([]byte, error) {
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "-----BEGIN ") {
		return []byte(s), nil
	}
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	data, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
	if err != nil || len(data) == 0 {
		return nil, errors.New("must be the content of the file in base64")
	}
	return data, nil
}

// jsonFileParam is [decodeFileParam] for a file in JSON.
func jsonFileParam(s string) ([]byte, error) {
	data, err := decodeFileParam(s)
	if text := strings.TrimSpace(string(data)); err == nil && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		err = errors.New("must be the content of a JSON file in base64")
	}
	return data, err
}
