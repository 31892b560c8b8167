package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// fieldTemplate holds values for the variables in the URLs of a key: an object in JSON, or the
// fields template[NAME] of a form.
const fieldTemplate = "template"

// templateField matches a form field with a value for a variable.
var templateField = lazyregexp.New(`^template\[(.*)\]$`)

// variableName matches the names of variables.
var variableName = lazyregexp.New(`^\w{1,32}$`)

// values returns the values for the variables in URLs, by the lower-case names of the variables. A
// blank value and null count as none. In a request with mappings, the field belongs to another
// program and is ignored.
func (c *content) values() (map[string]string, error) {
	values, err := c.readValues()
	if err != nil && c.mapped {
		return nil, nil
	}
	return values, err
}

func (c *content) readValues() (map[string]string, error) {
	var v variableValues
	for name, f := range c.fields {
		m := templateField.FindStringSubmatch(name)
		switch {
		case m != nil && f.json == nil && len(f.texts) > 0:
			if err := v.add(m[1], f.texts[len(f.texts)-1]); err != nil {
				return nil, err
			}
		case name != fieldTemplate || f.absent() || len(f.texts) > 0 && f.empty():
		case len(f.texts) > 0:
			return nil, badField(fieldTemplate, "the field template is a text; write template[NAME]=value for each value")
		case jsonType(f.json) != jsonObject:
			return nil, wrongType(fieldTemplate, jsonType(f.json), "an object with texts")
		default:
			if err := v.addObject(f.json); err != nil {
				return nil, err
			}
		}
	}
	return v.values, nil
}

// variableValues collects values for variables.
type variableValues struct {
	names  map[string]string // spelling of the names, by the name in lower case
	values map[string]string
}

// addObject adds the values of a JSON object.
func (v *variableValues) addObject(object json.RawMessage) error {
	n := 0
	_, err := eachMember(object, func(name string, value json.RawMessage) error {
		if n++; n > maxFields {
			return badField(fieldTemplate, "the field template has more than %d values", maxFields)
		}
		switch jsonType(value) {
		case jsonNull:
			return v.add(name, "")
		case jsonString:
			text, err := unquote(value)
			if err != nil {
				return badField(fieldTemplate, "the field template: %w", err)
			}
			return v.add(name, text)
		}
		return badField(fieldTemplate, "a value of the field template is %s; it must be a text", jsonType(value))
	})
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return badField(fieldTemplate, "the field template: %w", err)
}

// add adds a value. A name may occur again in the same spelling; the last value counts.
func (v *variableValues) add(name, value string) error {
	if !variableName.MatchString(name) {
		return badField(fieldTemplate, "a name in the field template has other characters than letters, digits and _, or more than 32")
	}
	if err := notifier.CheckValue(value); err != nil {
		return badField(fieldTemplate, "the field template: %w", err)
	}
	if v.names == nil {
		v.names, v.values = map[string]string{}, map[string]string{}
	}
	key := strings.ToLower(name)
	if before, ok := v.names[key]; ok && before != name {
		return badField(fieldTemplate, "the field template has a name twice, in two spellings; names ignore case")
	}
	v.names[key] = name
	delete(v.values, key)
	if strings.TrimSpace(value) != "" {
		v.values[key] = value
	}
	return nil
}

// fill returns targets with the variables of their URLs replaced by the request's values. The
// Request closes the destinations that it makes.
func (q *Request) fill(targets []notifier.Target, values map[string]string) []notifier.Target {
	if len(values) == 0 {
		return targets
	}
	targets = slices.Clone(targets) // the slice belongs to the key
	for i := range targets {
		if t, made := targets[i].With(values); made {
			targets[i] = t
			q.opened = append(q.opened, t)
		}
	}
	return targets
}
