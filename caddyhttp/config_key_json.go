package caddyhttp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
)

// keyURLObject is a KeyURL that is an object in JSON.
type keyURLObject KeyURL

// MarshalJSON implements json.Marshaler. A URL without a directory and tags is
// a string. Caddy reads and writes a configuration several times when it loads,
// and a string costs much less than an object.
func (u KeyURL) MarshalJSON() ([]byte, error) {
	if u.Dir == "" && len(u.Tags) == 0 {
		return json.Marshal(u.URL)
	}
	return json.Marshal(keyURLObject(u))
}

// UnmarshalJSON implements json.Unmarshaler. It takes a string or an object.
// Unknown fields are errors, as in the rest of a configuration.
func (u *KeyURL) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return caddy.StrictUnmarshalJSON(data, (*keyURLObject)(u))
	}
	*u = KeyURL{}
	if inner := data[1 : len(data)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		u.URL = string(inner) // most URLs: without decoding
		return nil
	}
	return json.Unmarshal(data, &u.URL)
}
