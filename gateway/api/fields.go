package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// content is the content of a request: its fields, and what else its body says.
type content struct {
	fields   map[string]field    // of the body
	query    map[string][]string // title, type, format, incident, send_at, tag and tags of the query string
	mapped   bool                // the query string has mappings
	raw      *bytes.Buffer       // backs the JSON values in fields; nil if there are none
	jsonForm bool                // the body was sent as a form but begins like JSON
	foreign  bool                // the title or the body is from another program's payload
	dialect  markup.Dialect

	acknowledge string // address at which a webhook's incident can be acknowledged
}

// The fields that the API knows. Any other field is ignored, with a warning.
const (
	fieldURLs     = "urls"
	fieldBody     = "body"
	fieldTitle    = "title"
	fieldType     = "type"
	fieldFormat   = "format"
	fieldIncident = "incident"
)

// Fields with several names.
var (
	tagFields    = []string{"tag", "tags"}
	attachFields = []string{"attach", "attachment", "attachments"}
)

// fieldNames are the names of all fields that the API knows.
var fieldNames = slices.Concat([]string{
	fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat, fieldIncident, fieldTemplate,
	fieldSendAt,
}, tagFields, attachFields, askFields)

func isField(name string) bool { return slices.Contains(fieldNames, name) }

// maxFields bounds the fields of a request, known or not.
const maxFields = 1000

// field is the value of one field: a JSON value, or the texts that a form has
// under one name.
type field struct {
	json   json.RawMessage
	texts  []string
	mapped bool // a mapping or a header has set it
}

// absent reports whether the field has no value or the value null.
func (f field) absent() bool {
	return len(f.texts) == 0 && jsonType(f.json) == jsonNull
}

// empty reports whether the field has no value or one without content: a blank
// text, or an array or object without elements.
func (f field) empty() bool {
	if f.absent() {
		return true
	}
	for _, t := range f.texts {
		if strings.TrimSpace(t) != "" {
			return false
		}
	}
	switch jsonType(f.json) {
	case jsonString:
		s, err := unquote(f.json)
		return err == nil && strings.TrimSpace(s) == ""
	case jsonArray, jsonObject:
		return len(bytes.TrimSpace(f.json[1:len(f.json)-1])) == 0
	}
	return len(f.texts) > 0
}

// text returns the value of a field that takes one text. Of several in a form,
// the last one counts.
func (f field) text(name string) (string, error) {
	switch {
	case f.absent():
		return "", nil
	case len(f.texts) > 0:
		return f.texts[len(f.texts)-1], nil
	}
	if t := jsonType(f.json); t != jsonString {
		return "", wrongType(name, t, jsonString)
	}
	s, err := unquote(f.json)
	if err != nil {
		return "", badField(name, "the field %s: %w", name, err)
	}
	return s, nil
}

// item is one value of a field that takes several: a text or a JSON object.
type item struct {
	name   string // name of the field, with an index if there are several
	text   string
	object json.RawMessage // nil for a text
}

// items returns the values of a field that takes a text or an array of texts
// and, if objects is set, JSON objects as well.
func (f field) items(name string, objects bool) ([]item, error) {
	if f.absent() {
		return nil, nil
	}
	if len(f.texts) > 0 {
		out := make([]item, len(f.texts))
		for i, t := range f.texts {
			out[i] = item{name: name, text: t}
			if len(f.texts) > 1 {
				out[i].name = fmt.Sprintf("%s[%d]", name, i)
			}
		}
		return out, nil
	}
	if jsonType(f.json) != jsonArray {
		expected := "a string or an array of strings"
		if objects {
			expected = "a string, an object, or an array of strings and objects"
		}
		i, err := newItem(name, f.json, objects, expected)
		if err != nil {
			return nil, err
		}
		return []item{i}, nil
	}
	values, err := arrayElements(f.json)
	if err != nil {
		return nil, badField(name, "the field %s: %w", name, err)
	}
	expected := jsonString
	if objects {
		expected = "a string or an object"
	}
	out := make([]item, len(values))
	for i, v := range values {
		if out[i], err = newItem(fmt.Sprintf("%s[%d]", name, i), v, objects, expected); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newItem(name string, value json.RawMessage, objects bool, expected string) (item, error) {
	t := jsonType(value)
	if objects && t == jsonObject {
		return item{name: name, object: value}, nil
	}
	if t != jsonString {
		return item{}, wrongType(name, t, expected)
	}
	text, err := unquote(value)
	if err != nil {
		return item{}, badField(name, "the field %s: %w", name, err)
	}
	return item{name: name, text: text}, nil
}

func arrayElements(array json.RawMessage) (out []json.RawMessage, err error) {
	err = eachElement(array, func(n int, v json.RawMessage) error {
		if n == maxFields {
			return fmt.Errorf("it has more than %d items", maxFields)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

func wrongType(name, got, want string) *Error {
	return badField(name, "the field %s is %s; it must be %s", name, got, want)
}

// text returns the value of a field of the body or, if it is empty, of the
// query string.
func (c *content) text(name string) (string, error) {
	s, err := c.fields[name].text(name)
	if err != nil || s != "" {
		return s, err
	}
	if values := c.query[name]; len(values) > 0 {
		return values[len(values)-1], nil
	}
	return "", nil
}

// form returns the texts of the fields of a form.
func (c *content) form() url.Values {
	form := url.Values{}
	for name, f := range c.fields {
		form[name] = slices.Clone(f.texts)
	}
	return form
}

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
	var d struct { // one allocation
		jsontext.Decoder
		text bytes.Buffer
	}
	d.text = *bytes.NewBuffer(text)
	d.Reset(&d.text, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return &d.Decoder
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
		var quoted, value json.RawMessage
		if quoted, err = readValue(d, text); err != nil {
			break
		}
		if value, err = readValue(d, text); err != nil {
			break
		}
		name, err := memberName(quoted)
		if err != nil {
			return nil, err
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

// memberName returns the text of a name in JSON. It does not copy the names that the API knows.
func memberName(quoted json.RawMessage) (string, error) {
	for _, name := range fieldNames {
		if string(quoted[1:len(quoted)-1]) == name {
			return name, nil
		}
	}
	return unquote(quoted)
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
