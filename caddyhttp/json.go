package caddyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads a JSON object. What its fields hold is looked at when they
// are used. Of fields of the same name the last one counts. The fields are
// parts of the text, which must not change while they are in use.
func readJSON(text []byte) (map[string]field, error) {
	fields := make(map[string]field, 8)
	n := 0
	rest, err := members(text, func(name string, value json.RawMessage) error {
		if n++; n > maxFields {
			return fmt.Errorf("more than %d fields", maxFields)
		}
		fields[name] = field{json: value}
		return nil
	})
	if err != nil {
		return nil, badRequest("the JSON: %w", err)
	}
	if len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, badRequest("the JSON: something follows the object, at byte %d", len(text)-len(rest))
	}
	return fields, nil
}

// newDecoder reads JSON where it lies. The caller has looked at the UTF-8, so
// that what is left to allow is an escape for half a character; who sends one
// gets U+FFFD for it, and the alert is not lost. Names may occur again.
func newDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// members calls f for each member of the JSON object with which a text begins,
// and returns what follows the object.
func members(text []byte, f func(name string, value json.RawMessage) error) (rest []byte, err error) {
	d := newDecoder(text)
	if d.PeekKind() != '{' {
		if _, err := d.ReadToken(); err != nil {
			return nil, brokenJSON(err)
		}
		return nil, errors.New("it must be an object")
	}
	for _, err = d.ReadToken(); err == nil && d.PeekKind() != '}'; {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		field := name.String() // the token ends with the next one
		var value json.RawMessage
		if value, err = readValue(d, text); err != nil {
			break
		}
		if err := f(field, value); err != nil {
			return nil, err
		}
	}
	if err == nil {
		_, err = d.ReadToken() // the closing brace
	}
	if err != nil {
		return nil, brokenJSON(err)
	}
	return text[d.InputOffset():], nil
}

// elements calls f for each element of a JSON array.
func elements(array json.RawMessage, f func(n int, value json.RawMessage) error) error {
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
		return brokenJSON(err)
	}
	return nil
}

// readValue reads the next value, as the part of the text that it is.
func readValue(d *jsontext.Decoder, text []byte) (json.RawMessage, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return text[end-len(value) : end : end], nil
}

func brokenJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("it is broken behind byte %d: %w", e.ByteOffset, e.Err)
	}
	return err
}

// textOf is what a JSON string says. Most hold no escape, and are taken as
// they are.
func textOf(value json.RawMessage) (string, error) {
	if len(value) >= 2 && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), nil
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err
}

// kindOf says with an article what a JSON value is.
func kindOf(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
