package payload

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Text returns a value as text: nil as "", an array or object as JSON.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case error:
		return v.Error()
	}
	return Encode(v)
}

// Encode returns v as JSON without HTML escapes.
func Encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// Get returns the member at the path of names in nested objects, or nil.
func Get(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// Size returns the approximate length of a value as text, in bytes.
func Size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := 2
		for _, item := range v {
			n += Size(item) + 1
		}
		return n
	case []string:
		n := 2
		for _, item := range v {
			n += len(item) + 3
		}
		return n
	case map[string]any:
		n := 2
		for name, item := range v {
			n += len(name) + Size(item) + 6
		}
		return n
	}
	return 8
}

// Len returns the number of elements or members of v, or 0.
func Len(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case []string:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// Or returns v, or other if v is empty.
func Or(v, other any) any {
	if _, empty := IsEmpty(v); empty {
		return other
	}
	return v
}

// IsEmpty reports whether v is nil, false, a blank text, or an array or object without
// elements, and how many bytes of a text it has read.
func IsEmpty(v any) (read int, empty bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case string:
		if read = strings.IndexFunc(v, func(c rune) bool { return !unicode.IsSpace(c) }); read < 0 {
			return len(v), true
		}
		return read, false
	case bool:
		return 0, !v
	case []any, []string, map[string]any:
		return 0, Len(v) == 0
	}
	return 0, false
}

// maxNumber is the maximum length of a text that is read as a number, in bytes.
const maxNumber = 400

// Float returns the value of a number or of a text with a number, and reports
// whether v is one.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		if len(v) > maxNumber {
			return 0, false
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return 0, false
}

// Int returns the integer part of a number within the range of int32, or 0.
func Int(v any) int {
	f, _ := Float(v)
	return int(max(math.MinInt32, min(f, math.MaxInt32)))
}

// IsNumber reports whether v is a number, and no text with one.
func IsNumber(v any) bool {
	switch v.(type) {
	case int, int64, float64:
		return true
	}
	return false
}

// Objects returns the first max objects of an array.
func Objects(v any, max int) (out []map[string]any) {
	all, _ := v.([]any)
	for _, item := range all {
		if m, ok := item.(map[string]any); ok && len(out) < max {
			out = append(out, m)
		}
	}
	return out
}
