package caddyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readJSON reads a JSON object. What its fields hold is looked at when they
// are used. Of fields of the same name the last one counts.
func readJSON(text []byte) (map[string]field, error) {
	fields := map[string]field{}
	n := 0
	dec := json.NewDecoder(bytes.NewReader(text))
	err := members(dec, func(name string, value json.RawMessage) error {
		if n++; n > maxFields {
			return fmt.Errorf("more than %d fields", maxFields)
		}
		fields[name] = field{json: value}
		return nil
	})
	if err != nil {
		return nil, badRequest("the JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, badRequest("the JSON: something follows the object, at byte %d", dec.InputOffset())
	}
	return fields, nil
}

// members calls f for each member of the JSON object that dec is to read.
func members(dec *json.Decoder, f func(name string, value json.RawMessage) error) error {
	first, err := dec.Token()
	if err != nil {
		return brokenJSON(dec, err)
	}
	if first != json.Delim('{') {
		return errors.New("it must be an object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return brokenJSON(dec, err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return brokenJSON(dec, err)
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return brokenJSON(dec, err)
	}
	return nil
}

// elements calls f for each element of a JSON array.
func elements(array json.RawMessage, f func(n int, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(array))
	if _, err := dec.Token(); err != nil {
		return brokenJSON(dec, err)
	}
	for n := 0; dec.More(); n++ {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return brokenJSON(dec, err)
		}
		if err := f(n, value); err != nil {
			return err
		}
	}
	return nil
}

func brokenJSON(dec *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("it is broken behind byte %d: %w", dec.InputOffset(), err)
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
