// Package payload decodes the JSON that other programs send, and reads values of it.
//
// A decoded value is nil, a string, a bool, an int64, a float64, a []any or a
// map[string]any. Programs leave out fields or give them another type than their
// documentation says. So only Decode fails: for the other functions, what is missing
// or of another type is nil, "", 0 or empty.
//
//	data, err := payload.Decode(body)
//	summary := payload.Text(payload.Get(data, "payload", "summary"))
package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxItems is the number of elements that Decode decodes of one array. The others are nil.
const MaxItems = 1000

// Further limits of a decoded payload. Decode leaves out what exceeds them, so that a
// message about too many alerts still arrives.
const (
	maxValues = 100_000 // decoded values of the payload
	maxDepth  = 100     // nested arrays and objects
	maxCount  = 1 << 20 // elements of all arrays, decoded or not
)

// Decode decodes a JSON text into nil, string, bool, int64, float64, []any and map[string]any.
// Values that exceed the limits become nil. An array keeps its length up to maxCount elements. The
// outermost object keeps members that are null; other objects leave them out. Most texts are parts
// of one copy of the JSON text: clone what outlives the payload.
func Decode(text []byte) (any, error) {
	d := &decoder{
		Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)),
		whole:   string(text),
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
	whole         string // the JSON text
	values, count int    // remaining of maxValues and maxCount
}

// text reads a string. One without escapes is a part of the JSON text.
func (d *decoder) text() (string, error) {
	before := d.InputOffset()
	t, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	_, quoted, _ := strings.Cut(d.whole[before:d.InputOffset()-1], `"`)
	if strings.IndexByte(quoted, '\\') >= 0 || !utf8.ValidString(quoted) {
		return t.String(), nil
	}
	return quoted, nil
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
	case '"':
		return d.text()
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
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
		name, err := d.text()
		if err != nil {
			return nil, err
		}
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
		if len(out) < MaxItems {
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

// LooksLikeJSON reports whether a body is a JSON object or array. Programs that set no
// Content-Type send JSON that is declared as a form.
func LooksLikeJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}
