package caddyhttp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
)

// Keys and URLs have short forms in JSON. When a configuration loads, Caddy
// decodes and encodes it several times, and handlers of a site more often than
// the rest. An array of strings costs much less than objects.

// keyObject is a Key that is an object in JSON.
type keyObject Key

// keyURLObject is a KeyURL that is an object in JSON.
type keyURLObject KeyURL

// MarshalJSON implements json.Marshaler. A key that has only URLs becomes an array
// of them.
func (k Key) MarshalJSON() ([]byte, error) {
	if len(k.URLs) == 0 || !reflect.DeepEqual(k, Key{URLs: k.URLs}) {
		return json.Marshal(keyObject(k))
	}
	var err error
	size := 2
	for _, u := range k.URLs {
		size += len(u.URL) + 20
	}
	out := append(make([]byte, 0, size), '[')
	for i, u := range k.URLs {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = u.appendJSON(out); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler. It takes an array or an object.
// Unknown fields are errors, as in the rest of a configuration.
func (k *Key) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return caddy.StrictUnmarshalJSON(data, (*keyObject)(k))
	}
	*k = Key{}
	if texts, ok := plainStrings(data); ok {
		k.URLs = make([]KeyURL, len(texts))
		for i, text := range texts {
			k.URLs[i].Tags, k.URLs[i].URL = cutTags(text)
		}
		return nil
	}
	return json.Unmarshal(data, &k.URLs)
}

// MarshalJSON implements json.Marshaler. A URL without a directory becomes a
// string that begins with its tags.
func (u KeyURL) MarshalJSON() ([]byte, error) { return u.appendJSON(nil) }

// appendJSON appends u in JSON to out.
func (u KeyURL) appendJSON(out []byte) ([]byte, error) {
	text := u.URL
	if len(u.Tags) > 0 {
		text = strings.Join(u.Tags, ",") + "=" + u.URL
	}
	if tags, url := cutTags(text); u.Dir == "" && url == u.URL && slices.Equal(tags, u.Tags) {
		return appendString(out, text)
	}
	object, err := json.Marshal(keyURLObject(u))
	return append(out, object...), err
}

// UnmarshalJSON implements json.Unmarshaler. It takes a string or an object.
// Unknown fields are errors, as in the rest of a configuration.
func (u *KeyURL) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return caddy.StrictUnmarshalJSON(data, (*keyURLObject)(u))
	}
	var text string
	err := json.Unmarshal(data, &text)
	*u = KeyURL{}
	u.Tags, u.URL = cutTags(text)
	return err
}

// cutTags divides a text such as "ops,dev=json://localhost" into tags and a URL.
// A text without tags is a URL. No URL begins like a tag: a scheme ends with ://,
// and a placeholder begins with a brace.
func cutTags(text string) (tags []string, url string) {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '=':
			return strings.Split(text[:i], ","), text[i+1:]
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == ':', c == ',':
		default:
			return nil, text
		}
	}
	return nil, text
}

// appendString appends a string in JSON to out.
func appendString(out []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			return append(out, quoted...), err
		}
	}
	return append(append(append(out, '"'), s...), '"'), nil
}

// plainStrings returns the strings of an array in JSON whose syntax is valid. It
// reports whether the array has only strings that are written without escapes, as
// most URLs are. For those it takes a tenth of the time of json.Unmarshal.
func plainStrings(data []byte) (texts []string, ok bool) {
	if bytes.IndexByte(data, '\\') >= 0 || !utf8.Valid(data) {
		return nil, false
	}
	texts = make([]string, 0, bytes.Count(data, []byte(`","`))+1)
	rest := bytes.TrimSpace(data[1 : len(data)-1])
	for len(rest) > 0 {
		if rest[0] != '"' {
			return nil, false
		}
		text, after, _ := bytes.Cut(rest[1:], []byte{'"'})
		texts = append(texts, string(text))
		rest = bytes.TrimLeft(after, ", \t\r\n")
	}
	return texts, true
}
