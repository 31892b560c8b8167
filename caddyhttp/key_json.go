package caddyhttp

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
)

// In JSON, a key is written as an object, and each of its URLs, too, so that
// /config/apps/notify/keys/ops/urls/0/tags is an address that stays what it is when the
// key gets another setting. Both also have a short form, which is read and never written.

// keyObject is a Key that is an object in JSON.
type keyObject Key

// keyURLObject is a KeyURL that is an object in JSON.
type keyURLObject KeyURL

// UnmarshalJSON implements json.Unmarshaler. It takes an object, or an array of the URLs.
// Unknown fields are errors, as in the rest of a configuration.
func (k *Key) UnmarshalJSON(data []byte) error {
	short := len(data) > 0 && data[0] == '['
	if short {
		*k = Key{}
	}
	// Most keys have only URLs. For those this takes a tenth of the time of a decoder.
	p := plainScanner{rest: data, ok: bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data)}
	if short || p.take('{') && p.text() == "urls" && p.take(':') {
		if urls := p.urls(); p.ok && (short || p.take('}')) && len(p.rest) == 0 {
			k.URLs = urls
			return nil
		}
	}
	if short {
		return json.Unmarshal(data, &k.URLs)
	}
	return caddy.StrictUnmarshalJSON(data, (*keyObject)(k))
}

// UnmarshalJSON implements json.Unmarshaler. It takes an object or a string.
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

// plainScanner reads JSON whose syntax is valid and that has no escapes in its strings. It is
// no longer ok once it has met anything but what it was asked for.
type plainScanner struct {
	rest []byte
	ok   bool
}

// take reads c, if it comes next, with the space and the commas before it.
func (p *plainScanner) take(c byte) bool {
	rest := bytes.TrimLeft(p.rest, ", \t\r\n")
	if len(rest) == 0 || rest[0] != c {
		return false
	}
	p.rest = rest[1:]
	return true
}

// text reads a string.
func (p *plainScanner) text() string {
	if p.ok = p.ok && p.take('"'); !p.ok {
		return ""
	}
	text, after, _ := bytes.Cut(p.rest, []byte{'"'})
	p.rest = after
	return string(text)
}

// urls reads an array of URLs in either form.
func (p *plainScanner) urls() (urls []KeyURL) {
	p.ok = p.ok && p.take('[')
	for urls = []KeyURL{}; p.ok && !p.take(']'); {
		var u KeyURL
		if !p.take('{') {
			u.Tags, u.URL = cutTags(p.text())
			urls = append(urls, u)
			continue
		}
		for p.ok && !p.take('}') {
			switch name := p.text(); {
			case !p.ok || !p.take(':'):
				p.ok = false
			case name == "url":
				u.URL = p.text()
			case name == "dir":
				u.Dir = p.text()
			case name == "tags" && p.take('['):
				for u.Tags = []string{}; p.ok && !p.take(']'); {
					u.Tags = append(u.Tags, p.text())
				}
			default:
				p.ok = false
			}
		}
		urls = append(urls, u)
	}
	return urls
}
