package source

import (
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// listFunctions are the functions of templates that read arrays and objects.
type listFunctions struct{ *meter }

// all returns the functions by name.
func (l listFunctions) all() map[string]any {
	return map[string]any{
		"_items":  l.rangeItems,
		"index":   l.index,
		"len":     l.length,
		"first":   func(n, v any) (any, error) { return firstItems(items(v), payload.Int(n)), l.charge(0) },
		"more":    func(n, v any) (int, error) { have, err := l.length(v); return max(have-max(payload.Int(n), 0), 0), err },
		"pairs":   l.pairs,
		"pick":    l.pick,
		"where":   func(name, value, list any) (any, error) { return l.filter(name, value, list, true) },
		"without": func(name, value, list any) (any, error) { return l.filter(name, value, list, false) },
	}
}

// rangeItems returns what range iterates over, and charges its rounds as steps. An object is sorted
// by its names, which is charged too.
func (l listFunctions) rangeItems(v any) (any, error) {
	list := items(v)
	if m, ok := list.(map[string]any); ok {
		return list, l.charge(sortWork(m))
	}
	return list, l.charge(0)
}

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
func (l listFunctions) length(v any) (int, error) {
	if s, ok := v.(string); ok {
		if err := l.charge(len(s)); err != nil {
			return 0, err
		}
		return utf8.RuneCountInString(s), nil
	}
	return payload.Len(v), l.charge(0)
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
func (l listFunctions) index(v any, keys ...any) (any, error) {
	if err := l.charge(0); err != nil {
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
			name, err := l.text(key)
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
func (l listFunctions) pick(v any, names ...any) (any, error) {
	keys, err := l.texts(names...)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		member := payload.Get(v, key)
		read, empty := payload.IsEmpty(member)
		if err := l.charge(read); err != nil {
			return nil, err
		}
		if !empty {
			return member, nil
		}
	}
	return nil, l.charge(0)
}

// pairs returns the members of an object as texts "name: value" in alphabetical
// order, without the members in names. An object among names stands for the names of
// its members.
func (l listFunctions) pairs(v any, names ...any) ([]string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, l.charge(0)
	}
	if err := l.charge(sortWork(m)); err != nil {
		return nil, err
	}
	leave := map[string]bool{}
	for _, name := range names {
		if others, ok := name.(map[string]any); ok {
			if err := l.charge(sortWork(others)); err != nil {
				return nil, err
			}
			for name := range others {
				leave[name] = true
			}
			continue
		}
		s, err := l.text(name)
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
		value, err := l.text(m[name])
		if err != nil {
			return nil, err
		}
		out = append(out, name+": "+value)
	}
	return out, nil
}

// filter returns the elements of a list whose member name equals value or, if want is
// false, the other elements.
func (l listFunctions) filter(name, value, list any, want bool) (any, error) {
	all, ok := list.([]any)
	if !ok {
		return []any(nil), l.charge(0)
	}
	key, err := l.text(name)
	if err != nil {
		return nil, err
	}
	if err := l.charge((16 + len(key)) * len(all)); err != nil {
		return nil, err
	}
	var out []any
	for _, item := range all {
		same, err := valueFunctions(l).equal(payload.Get(item, key), value)
		if err != nil {
			return nil, err
		}
		if same == want {
			out = append(out, item)
		}
	}
	return out, nil
}
