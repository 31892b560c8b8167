package notifier

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/net/http/httpguts"
)

// maxItems is the maximum number of items in a list of a URL. For each item,
// every message makes at least one request.
const maxItems = 500

// listRules are the rules for the items of a list.
type listRules struct {
	split       func(string) []string
	repeats     bool // the same item may occur twice
	dropInvalid bool
	prefixed    []Prefixed
	parts       []variable // of Prefixed.Items, for each of prefixed
}

// Prefixed is a list for the items of another list that begin with a prefix, such as @user or
// #room. It has them without the prefix.
type Prefixed struct {
	Prefix string
	Items  *[]string
	Doc    string
}

// List binds a list of texts. A path segment is an item. In the query and
// within a segment, commas, semicolons and white space separate items. Of equal
// items, the first counts. Items with one of the prefixes go into the prefix's
// list.
func (s *Schema) List(v *[]string, name, doc string, prefixed ...Prefixed) *Param {
	*v = nil
	p := s.declare(KindList, name, "", doc, unsafe.Pointer(v))
	p.list = listRules{split: splitItems, prefixed: prefixed}
	for _, x := range prefixed {
		*x.Items = nil
		p.list.parts = append(p.list.parts, s.bind(unsafe.Pointer(x.Items)))
	}
	return p
}

func splitItems(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\n\r", r) })
}

// Phones binds a list of telephone numbers, which are read by [Phone]. Commas
// and semicolons separate them; white space does not.
func (s *Schema) Phones(v *[]string, name, doc string, prefixed ...Prefixed) *Param {
	p := s.List(v, name, doc, prefixed...).Split(splitPhones).Normalize(Phone).Example("15551234567")
	p.phones = true
	return p
}

func splitPhones(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' })
}

// Path binds path segments that are themselves a path, such as the path of the service on its
// server. Each segment or value of the query is one item, and items may be equal.
func (s *Schema) Path(v *[]string, name, doc string) *Param {
	p := s.List(v, name, doc).Split(Unsplit)
	p.list.repeats = true
	return p
}

// Split sets how a text becomes the items of a list.
func (p *Param) Split(f func(text string) []string) *Param {
	p.mustDescribe(KindList)
	p.list.split = f
	return p
}

// Unsplit is a function for [Param.Split] that makes one item of a text.
func Unsplit(text string) []string { return []string{text} }

// DropInvalid accepts an optional list whose items are all invalid as an empty
// one, because URLs in use rely on it. Without it, such a list is an error.
// Invalid items among valid ones are always left out, with a warning.
func (p *Param) DropInvalid() *Param {
	p.mustDescribe(KindList)
	p.list.dropInvalid = true
	return p
}

// setList sets a list to the items in values. It returns a warning for each
// invalid item, which it leaves out. If all are invalid, the first one is an
// error, unless the list may then be empty.
func (d *Destination) setList(p *Param, values []string, mayBeEmpty bool) (warnings []string, err error) {
	var invalid error // the first invalid item
	read, count, valid := 0, 0, 0
	for _, value := range values {
		for _, item := range p.list.split(value) {
			read++
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			if count++; count > maxItems {
				return nil, fmt.Errorf("%s has more than %d items; move the others to another URL", p.described(), maxItems)
			}
			d.read++
			item, problem := p.check(item)
			if problem == nil {
				valid++
				d.addItem(p, item)
				continue
			}
			if invalid == nil {
				invalid = fmt.Errorf("item %d of %s %w", read, p.described(), problem)
			}
			if p.list.repeats {
				return nil, invalid // a path without one of its segments is a different path
			}
			warnings = append(warnings, fmt.Sprintf("item %d of %s %v and is left out", read, p.name, problem))
		}
	}
	if valid == 0 && invalid != nil && !mayBeEmpty {
		return nil, invalid
	}
	return warnings, nil
}

// list returns a pointer to the items of a list that have no prefix.
func (d *Destination) list(p *Param) *[]string { return (*[]string)(d.at(p.variable)) }

// prefixed returns a pointer to the items with one of the prefixes of a list.
func (d *Destination) prefixed(p *Param, i int) *[]string { return (*[]string)(d.at(p.list.parts[i])) }

// addItem adds an item to a list, or to the list of its prefix.
func (d *Destination) addItem(p *Param, item string) {
	to := d.list(p)
	for i, x := range p.list.prefixed {
		if rest, ok := strings.CutPrefix(item, x.Prefix); ok && rest != "" {
			to, item = d.prefixed(p, i), rest
			break
		}
	}
	if p.list.repeats || !slices.Contains(*to, item) {
		*to = append(*to, item)
	}
}

// countItems returns the number of items of a list.
func (d *Destination) countItems(p *Param) int {
	n := len(*d.list(p))
	for i := range p.list.prefixed {
		n += len(*d.prefixed(p, i))
	}
	return n
}

// items returns the items of a list as a URL writes them, those with a prefix
// last.
func (d *Destination) items(p *Param) []string {
	items := slices.Clone(*d.list(p))
	for i, x := range p.list.prefixed {
		for _, item := range *d.prefixed(p, i) {
			items = append(items, x.Prefix+item)
		}
	}
	return items
}

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

// Public says that values of a map are not secrets but ordinary words: the values of the keys or,
// without keys, all values.
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
