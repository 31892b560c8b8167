package api

import (
	"encoding/json"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxTagJSON bounds the JSON of a tag expression, in bytes.
const maxTagJSON = 64 << 10

// tags returns the tag expression of the body or, if it is empty, of the query
// string.
func (c *content) tags() (notifier.TagExpr, error) {
	for _, name := range tagFields {
		v, err := c.fields[name].tags(name)
		if err != nil {
			return notifier.TagExpr{}, err
		}
		if e, err := parseTags(name, v); err != nil || !e.Empty() {
			return e, err
		}
	}
	for _, name := range tagFields {
		if e, err := parseTags(name, anyOf(c.query[name])); err != nil || !e.Empty() {
			return e, err
		}
	}
	return notifier.TagExpr{}, nil
}

// tags returns the value in the form that [notifier.ParseTags] takes. Several
// texts of a form are alternatives.
func (f field) tags(name string) (any, error) {
	switch {
	case f.absent():
		return nil, nil
	case len(f.texts) > 0:
		return anyOf(f.texts), nil
	case len(f.json) > maxTagJSON:
		return nil, badField(name, "the field %s is longer than %s", name, formatSize(maxTagJSON))
	}
	var v any
	if err := json.Unmarshal(f.json, &v); err != nil {
		return nil, badField(name, "the field %s: %w", name, err)
	}
	return v, nil
}

// checkTagTypes returns an error if a tag field has the wrong type. Requests
// with URLs do not use tags, but a wrong type is still a mistake of the client.
func (c *content) checkTagTypes() error {
	for _, name := range tagFields {
		v, err := c.fields[name].tags(name)
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

// isTags reports whether v has the type of a tag expression: a text, or an
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
		return e, badField(name, "the field %s: %w", name, err)
	}
	return e, nil
}
