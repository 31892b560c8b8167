package source

import (
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// sortWork returns the work to sort an object by its names.
func sortWork(m map[string]any) int {
	n := 0
	for name := range m {
		n += len(name) + 32
	}
	return n * bits.Len(uint(len(m)))
}

// items returns v if range can iterate over it: an array, an object, or an integer
// of the template. It returns an empty list for any other value.
func items(v any) any {
	switch v := v.(type) {
	case []any, []string, map[string]any, int:
		return v
	}
	return []any(nil)
}

// length returns the number of characters, elements or members of v, or 0.
func (x *run) length(v any) (int, error) {
	if s, ok := v.(string); ok {
		if err := x.charge(len(s)); err != nil {
			return 0, err
		}
		return utf8.RuneCountInString(s), nil
	}
	return payload.Len(v), x.charge(0)
}

// firstItems returns the first n elements of an array.
func firstItems(v any, n int) any {
	n = max(n, 0)
	switch v := v.(type) {
	case []any:
		return v[:min(n, len(v))]
	case []string:
		return v[:min(n, len(v))]
	}
	return []any(nil)
}

// index returns the value at the keys in nested arrays and objects, or nil.
func (x *run) index(v any, keys ...any) (any, error) {
	if err := x.charge(0); err != nil {
		return nil, err
	}
	for _, key := range keys {
		switch list := v.(type) {
		case []any:
			n := payload.Int(key)
			if _, isText := key.(string); isText || n < 0 || n >= len(list) {
				return nil, nil
			}
			v = list[n]
		case []string:
			n := payload.Int(key)
			if n < 0 || n >= len(list) {
				return nil, nil
			}
			v = list[n]
		case map[string]any:
			name, err := x.text(key)
			if err != nil {
				return nil, err
			}
			v = list[name]
		default:
			return nil, nil
		}
	}
	return v, nil
}

// pick returns the first member of an object among names that is not empty, or nil.
func (x *run) pick(v any, names ...any) (any, error) {
	for _, name := range names {
		key, err := x.text(name)
		if err != nil {
			return nil, err
		}
		member := payload.Get(v, key)
		read, empty := payload.IsEmpty(member)
		if err := x.charge(read); err != nil {
			return nil, err
		}
		if !empty {
			return member, nil
		}
	}
	return nil, x.charge(0)
}

// pairs returns the members of an object as texts "name: value" in alphabetical
// order, without the members in names. An object among names stands for the names of
// its members.
func (x *run) pairs(v any, names ...any) ([]string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, x.charge(0)
	}
	if err := x.charge(sortWork(m)); err != nil {
		return nil, err
	}
	leave := map[string]bool{}
	for _, name := range names {
		if others, ok := name.(map[string]any); ok {
			if err := x.charge(sortWork(others)); err != nil {
				return nil, err
			}
			for name := range others {
				leave[name] = true
			}
			continue
		}
		s, err := x.text(name)
		if err != nil {
			return nil, err
		}
		leave[s] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if leave[name] || m[name] == nil {
			continue
		}
		value, err := x.text(m[name])
		if err != nil {
			return nil, err
		}
		out = append(out, name+": "+value)
	}
	return out, nil
}

// filter returns the elements of a list whose member name equals value or, if want is
// false, the other elements.
func (x *run) filter(name, value, list any, want bool) (any, error) {
	all, ok := list.([]any)
	if !ok {
		return []any(nil), x.charge(0)
	}
	key, err := x.text(name)
	if err != nil {
		return nil, err
	}
	if err := x.charge((16 + len(key)) * len(all)); err != nil {
		return nil, err
	}
	var out []any
	for _, item := range all {
		same, err := x.equal(payload.Get(item, key), value)
		if err != nil {
			return nil, err
		}
		if same == want {
			out = append(out, item)
		}
	}
	return out, nil
}
