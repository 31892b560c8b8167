package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a decoded payload. decodeJSON leaves out what exceeds them, so that a
// message about too many alerts still arrives.
const (
	maxItems  = 1000    // decoded elements of one array; the others are nil
	maxValues = 100_000 // decoded values of the payload
	maxDepth  = 100     // nested arrays and objects
	maxCount  = 1 << 20 // elements of all arrays, decoded or not
)

// decodeJSON decodes a JSON text into nil, string, bool, int64, float64, []any and
// map[string]any. Values that exceed the limits become nil. An array keeps its length
// up to maxCount elements. The members of the outermost object are there even if they
// are null; those of other objects are left out.
func decodeJSON(text []byte) (any, error) {
	d := &decoder{
		Decoder: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)),
		values:  maxValues, count: maxCount,
	}
	v, err := d.value(0)
	if err == nil {
		if _, err = d.ReadToken(); err == io.EOF {
			return v, nil
		}
		if err == nil {
			err = errors.New("something follows the value")
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it ends too early")
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, fmt.Errorf("at byte %d: %w", e.ByteOffset, e.Err)
	}
	return nil, err
}

type decoder struct {
	*jsontext.Decoder
	values, count int // remaining of maxValues and maxCount
}

func (d *decoder) value(depth int) (any, error) {
	if d.values--; d.values < 0 || depth > maxDepth {
		return nil, d.SkipValue()
	}
	switch d.PeekKind() {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '"':
		return t.String(), nil
	case '0':
		return number(t.String()), nil
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return nil, nil
}

func (d *decoder) object(depth int) (any, error) {
	out := map[string]any{}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := t.String() // the token is valid until the next read
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if v != nil || depth == 0 && d.values >= 0 {
			out[name] = v
		}
	}
	_, err := d.ReadToken()
	return out, err
}

func (d *decoder) array(depth int) (any, error) {
	out := []any{}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		var v any
		var err error
		if len(out) < maxItems {
			v, err = d.value(depth + 1)
		} else {
			err = d.SkipValue()
		}
		if err != nil {
			return nil, err
		}
		if d.count--; d.count >= 0 {
			out = append(out, v)
		}
	}
	_, err := d.ReadToken()
	return out, err
}

// number returns a JSON number as an int64 or, if it does not fit, a float64. A number
// out of range is a string.
func number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return f
}

// text returns a value as text: nil as "", an array or object as JSON.
func text(v any) string {
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
	return encodeJSON(v)
}

// encodeJSON returns v as JSON without HTML escapes.
func encodeJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// get returns the member at the path of names in nested objects, or nil.
func get(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// size returns the approximate length of a value as text, in bytes.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := 2
		for _, item := range v {
			n += size(item) + 1
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
			n += len(name) + size(item) + 6
		}
		return n
	}
	return 8
}
