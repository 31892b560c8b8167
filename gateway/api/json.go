package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON bodies are read with jsontext rather than encoding/json, because it
// returns each value as a part of the text, without a copy, and stops at the
// first field too many. BenchmarkReadJSON on two cores of a server, jsontext
// against json.Unmarshal into a map of json.RawMessage:
//
//	a message of 120 bytes        0.9 µs,  1 KiB allocated    1.7 µs,  1 KiB
//	a text of 1 MiB               0.7 ms,  1 KiB              3.5 ms,  1 MiB
//	a file in base64 of 1 MiB     0.6 ms,  1 KiB              6.5 ms,  1 MiB
//	an array of 1 MiB             1.6 ms,  1 KiB              7.4 ms,  1 MiB
//
// json.Decoder, which could stop early as well, takes 5 to 9 ms and 5 MiB.

// readJSON reads the fields of a JSON object. If a name occurs several times,
// the last one counts. The values are parts of text, which must not change
// while they are in use.
func readJSON(text []byte) (map[string]field, error) {
	fields := make(map[string]field, 8)
	n := 0
	rest, err := eachMember(text, func(name string, value json.RawMessage) error {
		if n++; n > maxFields {
			return fmt.Errorf("it has more than %d fields", maxFields)
		}
		fields[name] = field{json: value}
		return nil
	})
	if err != nil {
		return nil, badRequest("the JSON is invalid: %w", err)
	}
	if len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, badRequest("the JSON is invalid: something follows the object at byte %d", len(text)-len(rest))
	}
	return fields, nil
}

// ListError is returned for a JSON array, or another value, where an object is expected.
type ListError struct {
	Labels bool // the first element of the array has labels, like an alert of Prometheus
}

func (*ListError) Error() string { return `it must be an object, as in {"body": "hello"}` }

// newDecoder returns a decoder that reads text in place. The caller has
// checked that text is UTF-8; AllowInvalidUTF8 then only accepts an escape of
// half a surrogate pair, which becomes U+FFFD, so that the alert still arrives.
func newDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// eachMember calls f for each member of the JSON object at the beginning of
// text and returns what follows the object.
func eachMember(text []byte, f func(name string, value json.RawMessage) error) (rest []byte, err error) {
	d := newDecoder(text)
	if d.PeekKind() != '{' {
		if _, err := d.ReadToken(); err != nil {
			return nil, syntaxError(err)
		}
		list := new(ListError)
		if d.PeekKind() == '{' { // in an array
			_, _ = eachMember(text[d.InputOffset():], func(name string, _ json.RawMessage) error {
				list.Labels = list.Labels || name == "labels"
				return nil
			})
		}
		return nil, list
	}
	for _, err = d.ReadToken(); err == nil && d.PeekKind() != '}'; {
		var token jsontext.Token
		if token, err = d.ReadToken(); err != nil {
			break
		}
		name := token.String() // the token is valid until the next read
		var value json.RawMessage
		if value, err = readValue(d, text); err != nil {
			break
		}
		if err := f(name, value); err != nil {
			return nil, err
		}
	}
	if err == nil {
		_, err = d.ReadToken() // the closing brace
	}
	if err != nil {
		return nil, syntaxError(err)
	}
	return text[d.InputOffset():], nil
}

// eachElement calls f for each element of a JSON array.
func eachElement(array json.RawMessage, f func(n int, value json.RawMessage) error) error {
	d := newDecoder(array)
	_, err := d.ReadToken()
	for n := 0; err == nil && d.PeekKind() != ']'; n++ {
		var value json.RawMessage
		if value, err = readValue(d, array); err != nil {
			break
		}
		if err := f(n, value); err != nil {
			return err
		}
	}
	if err != nil {
		return syntaxError(err)
	}
	return nil
}

// readValue reads the next value and returns it as a part of text.
func readValue(d *jsontext.Decoder, text []byte) (json.RawMessage, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return text[end-len(value) : end : end], nil
}

func syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("at byte %d: %w", e.ByteOffset, e.Err)
	}
	return err
}

// unquote returns the text of a JSON string. Most strings hold no escape and
// are copied as they are.
func unquote(value json.RawMessage) (string, error) {
	if len(value) >= 2 && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}

// The types of JSON values, with an article for error texts.
const (
	jsonObject  = "an object"
	jsonArray   = "an array"
	jsonString  = "a string"
	jsonNumber  = "a number"
	jsonBoolean = "a boolean"
	jsonNull    = "null"
)

// jsonType returns the type of a JSON value. No value counts as null.
func jsonType(value json.RawMessage) string {
	if len(value) == 0 {
		return jsonNull
	}
	switch value[0] {
	case '{':
		return jsonObject
	case '[':
		return jsonArray
	case '"':
		return jsonString
	case 't', 'f':
		return jsonBoolean
	case 'n':
		return jsonNull
	}
	return jsonNumber
}
