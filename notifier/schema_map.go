package notifier

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/http/httpguts"
)

// maxEntries is the maximum number of entries in a map of a URL. Each entry is
// a part of every request.
const maxEntries = 100

// mapRules are the rules for the entries of a map.
type mapRules struct {
	prefix string   // of the query's keys
	header bool     // the entries are HTTP headers
	public []string // keys whose values are no secrets
}

// Map binds the values of the query whose keys begin with prefix, by their keys
// without it: +Header=value, -parameter=value, :field=value. With an empty
// prefix it takes all keys that are not parameters. The case of keys is kept.
// Values count as secrets, since headers often are.
func (s *Schema) Map(v *map[string]string, prefix, name, doc string) *Param {
	*v = nil
	p := s.declare(KindMap, name, "", doc, unsafe.Pointer(v))
	p.secret, p.dict.prefix = true, prefix
	return p
}

// Headers binds HTTP headers, which the query writes with a + before the name:
// +X-Origin=gateway. Names and values must be valid in a request (RFC 9110,
// sections 5.1 and 5.5).
func (s *Schema) Headers(v *map[string]string, name, doc string) *Param {
	p := s.Map(v, "+", name, doc)
	p.dict.header = true
	return p
}

// Public says that values of a map are no secrets, but words that a message may have, too: the
// values of the keys or, without keys, all values.
func (p *Param) Public(keys ...string) *Param {
	p.mustDescribe(KindMap)
	p.dict.public, p.secret = keys, len(keys) > 0
	return p
}

// hides reports whether the value of a map's key is a secret.
func (p *Param) hides(key string) bool { return p.secret && !slices.Contains(p.dict.public, key) }

// mapOf returns the map that takes a key of the query, or nil.
func (d *description) mapOf(key string) *Param {
	var rest *Param
	for _, p := range d.params {
		if p.kind != KindMap {
			continue
		}
		if p.dict.prefix == "" {
			rest = p
		} else if len(key) > len(p.dict.prefix) && strings.HasPrefix(key, p.dict.prefix) {
			return p
		}
	}
	return rest
}

// entries returns a pointer to the entries of a map.
func (d *Destination) entries(p *Param) *map[string]string {
	return (*map[string]string)(d.at(p.variable))
}

// put adds the value of a key of the query to the map.
func (d *Destination) put(p *Param, key, value string) error {
	v := d.entries(p)
	name := key[len(p.dict.prefix):]
	if p.dict.header && !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("the key of %s is not the name of an HTTP header; write for example +X-Origin=gateway", p.described())
	}
	if p.dict.header && !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("the value of %s has a line break or another control character; remove it", p.described())
	}
	if *v == nil {
		*v = map[string]string{}
	}
	if (*v)[name] = value; len(*v) > maxEntries {
		return fmt.Errorf("%s has more than %d entries; leave some out", p.described(), maxEntries)
	}
	return nil
}
