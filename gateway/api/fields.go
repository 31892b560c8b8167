package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
var fieldNames = slices.Concat([]string{fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat, fieldIncident, fieldTemplate, fieldSendAt}, tagFields, attachFields, askFields)

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
