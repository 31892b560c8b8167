package caddyhttp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// field is the value of one field: JSON, or the texts that a form has under
// one name.
type field struct {
	json  json.RawMessage
	texts []string
}

// absent says whether the field counts as missing.
func (f field) absent() bool {
	return len(f.texts) == 0 && (len(f.json) == 0 || kindOf(f.json) == "null")
}

// text is the value of a field that takes one text; of several in a form the
// last one counts.
func (f field) text(name string) (string, error) {
	switch {
	case f.absent():
		return "", nil
	case len(f.texts) > 0:
		return f.texts[len(f.texts)-1], nil
	}
	if kind := kindOf(f.json); kind != "a string" {
		return "", wrongKind(name, kind, "a string")
	}
	s, err := textOf(f.json)
	if err != nil {
		return "", badRequest("the field %s: %w", name, err)
	}
	return s, nil
}

// items is the value of a field that takes a text or an array of texts, or,
// with objects, of objects too. Each item is a string or a json.RawMessage of
// an object. array says whether they come from a JSON array.
func (f field) items(name string, objects bool) (out []any, array bool, err error) {
	if f.absent() {
		return nil, false, nil
	}
	for _, t := range f.texts {
		out = append(out, t)
	}
	if len(f.texts) > 0 {
		return out, false, nil
	}
	values := []json.RawMessage{f.json}
	if array = kindOf(f.json) == "an array"; array {
		values = nil
		err := elements(f.json, func(n int, v json.RawMessage) error {
			if n == maxFields {
				return fmt.Errorf("more than %d items", maxFields)
			}
			values = append(values, v)
			return nil
		})
		if err != nil {
			return nil, true, badRequest("the field %s: %w", name, err)
		}
	}
	for i, v := range values {
		at := name
		if array {
			at = fmt.Sprintf("%s[%d]", name, i)
		}
		kind := kindOf(v)
		if objects && kind == "an object" {
			out = append(out, v)
			continue
		}
		if kind != "a string" {
			return nil, array, wrongKind(at, kind, expectedItem(array, objects))
		}
		s, err := textOf(v)
		if err != nil {
			return nil, array, badRequest("the field %s: %w", at, err)
		}
		out = append(out, s)
	}
	return out, array, nil
}

// expectedItem says what a field that takes several items may be or, within an
// array, an item of it.
func expectedItem(array, objects bool) string {
	switch {
	case array && objects:
		return "a string or an object"
	case array:
		return "a string"
	case objects:
		return "a string, an object, or an array of strings and objects"
	}
	return "a string or an array of strings"
}

func wrongKind(name, kind, expected string) *refusal {
	return badRequest("the field %s is %s; it must be %s", name, kind, expected)
}

// text is the value of a field of the payload, or else of the query string.
func (q *request) text(name string) (string, error) {
	s, err := q.fields[name].text(name)
	if err != nil || s != "" {
		return s, err
	}
	if values := q.query[name]; len(values) > 0 {
		return values[len(values)-1], nil
	}
	return "", nil
}

// message reads the texts of the message.
func (q *request) message() (*notifier.Message, error) {
	m := &notifier.Message{}
	var kind, format string
	for _, f := range []struct {
		name string
		to   *string
	}{{fieldBody, &m.Body}, {fieldTitle, &m.Title}, {fieldType, &kind}, {fieldFormat, &format}} {
		var err error
		if *f.to, err = q.text(f.name); err != nil {
			return nil, err
		}
	}
	m.Title = foldLines(m.Title)
	var err error
	if m.Type, err = notifier.ParseType(kind); err != nil {
		return nil, badRequest("the field type: %w", err)
	}
	if m.Format, err = markup.ParseFormat(format); err != nil {
		return nil, badRequest("the field format: %w", err)
	}
	if err := q.readSources(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(m.Body) == "" && len(q.sources)+len(q.files) == 0 {
		if q.likeJSON {
			return nil, badRequest("the field body is missing; the request is JSON that came as a form, so send it with the header Content-Type: application/json")
		}
		if len(q.fields[payloadPart].texts) > 0 {
			return nil, badRequest("the field body is missing; a part payload is read as the fields of a message where its type is application/json")
		}
		return nil, badRequest("the field body is missing; only a message with an attachment can do without it")
	}
	return m, nil
}

// foldLines makes one line of a title: it becomes the subject of a mail, or a
// header, where nothing else will do.
func foldLines(title string) string { return oneLine.Replace(strings.Trim(title, "\r\n")) }

// maxTagText is how much JSON a tag expression may be.
const maxTagText = 64 << 10

// tags is the tag expression of the payload, or else of the query string.
func (q *request) tags() (notifier.TagExpr, error) {
	for _, name := range tagFields {
		v, err := q.fields[name].tags(name)
		if err != nil {
			return notifier.TagExpr{}, err
		}
		if e, err := parseTags(name, v); err != nil || !e.Empty() {
			return e, err
		}
	}
	for _, name := range tagFields {
		if e, err := parseTags(name, anyOf(q.query[name])); err != nil || !e.Empty() {
			return e, err
		}
	}
	return notifier.TagExpr{}, nil
}

// tags is the value in the form that [notifier.ParseTags] takes. Texts that a
// form has under one name are alternatives.
func (f field) tags(name string) (any, error) {
	switch {
	case f.absent():
		return nil, nil
	case len(f.texts) > 0:
		return anyOf(f.texts), nil
	case len(f.json) > maxTagText:
		return nil, badRequest("the field %s is longer than %s", name, size(maxTagText))
	}
	var v any
	if err := json.Unmarshal(f.json, &v); err != nil {
		return nil, badRequest("the field %s: %w", name, err)
	}
	return v, nil
}

// checkTags refuses tags of a type that is wrong wherever a message goes,
// though they have no meaning to one that brings its URLs.
func (q *request) checkTags() error {
	for _, name := range tagFields {
		v, err := q.fields[name].tags(name)
		if err != nil {
			return err
		}
		if !isTags(v) {
			_, err := parseTags(name, v)
			return err
		}
	}
	return nil
}

// isTags says whether a value has the type of a tag expression: a text, or an
// array of texts and of such arrays.
func isTags(v any) bool {
	switch v := v.(type) {
	case nil, string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return item == nil || !isTags(item) })
	}
	return false
}

func anyOf(texts []string) any {
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return texts[0]
	}
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func parseTags(name string, v any) (notifier.TagExpr, error) {
	e, err := notifier.ParseTags(v)
	if err != nil {
		return e, badRequest("the field %s: %w", name, err)
	}
	return e, nil
}
