package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// mapping is ?:source=target in the query string, with which a client sends
// fields under other names: the value of source is read as the field target.
type mapping struct {
	source string
	path   []step // source as a path, such as a.b[0].c
	target string
}

// step is one step of a path into nested JSON: a member, or an element if name
// is "".
type step struct {
	name  string
	index int
	json  bool // the member or element is a text with JSON, and the path goes on inside it
}

// jsonMark after a step means that its value is a text with JSON, and that the path goes on inside
// it.
const jsonMark = "::json"

// Limits of mappings. All mappings of a request together may search maxMappedBytes of JSON.
const (
	maxMappings    = 64
	maxSteps       = 16
	maxPathLength  = 1024
	maxMappedBytes = 64 << 20
)

// newMapping returns the mapping from source to target. An empty target removes
// the source. A target that is not a field is a constant for the field source.
func newMapping(source, target string) (mapping, error) {
	m := mapping{source: source, target: target}
	var err error
	if m.path, err = parsePath(source); err != nil {
		return m, m.wrap(err)
	}
	nested := m.nested()
	switch {
	case target == "" && nested:
		return m, m.wrap(errors.New("only a whole field can be removed, not a part of one"))
	case target != "" && !isMapped(target) && (nested || !isMapped(source)):
		return m, m.wrap(errors.New("the target must be urls, body, title, type, format, incident, tag, tags, attach, attachment or attachments"))
	}
	return m, nil
}

// isMapped reports whether a mapping can set or read a field.
func isMapped(name string) bool { return isField(name) && name != fieldTemplate }

// nested reports whether the source is a path into a field.
func (m mapping) nested() bool { return len(m.path) > 1 || m.path[0].json }

// wrap adds the source of the mapping to an error. It leaves out the target,
// which may be a URL with a secret.
func (m mapping) wrap(err error) *Error {
	return badRequest("the mapping ?:%s: %w", markup.TruncateBytes(m.source, 100), err)
}

// parsePath parses a path such as a.b[0].c. A source without dots and brackets
// is a path of one step.
func parsePath(s string) (path []step, err error) {
	if s == "" || len(s) > maxPathLength {
		return nil, fmt.Errorf("the source must have 1 to %d characters", maxPathLength)
	}
	for first := true; s != ""; first = false {
		if len(path) == maxSteps {
			return nil, fmt.Errorf("the path has more than %d steps", maxSteps)
		}
		if s[0] == '[' && !first {
			digits, rest, ok := strings.Cut(s[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !ok || err != nil {
				return nil, errors.New("brackets must hold a number, as in items[0]")
			}
			path, s = append(path, step{index: int(n)}), rest
			continue
		}
		if rest, ok := strings.CutPrefix(s, jsonMark); ok && !first && path[len(path)-1].name == "" {
			path[len(path)-1].json, s = true, rest
			continue
		}
		if !first {
			if s[0] != '.' {
				return nil, errors.New("a dot or a bracket must follow a bracket, as in items[0].name")
			}
			s = s[1:]
		}
		end := strings.IndexAny(s, ".[]")
		if end < 0 {
			end = len(s)
		}
		if end == 0 || end < len(s) && s[end] == ']' {
			return nil, errors.New("a path is names separated by dots, with numbers in brackets, as in items[0].name")
		}
		name, isJSON := strings.CutSuffix(s[:end], jsonMark)
		if name == "" {
			name, isJSON = s[:end], false
		}
		path, s = append(path, step{name: name, json: isJSON}), s[end:]
	}
	return path, nil
}

// applyMappings applies the mappings in order, each to the result of the one
// before. If several have the same target, the first one whose source is not
// empty counts.
func (c *content) applyMappings(mappings []mapping) error {
	if len(mappings) > 0 && c.fields == nil {
		c.fields = map[string]field{}
	}
	budget := maxMappedBytes
	for _, m := range mappings {
		if err := c.apply(m, &budget); err != nil {
			return m.wrap(err)
		}
	}
	return nil
}

func (c *content) apply(m mapping, budget *int) error {
	value := c.fields[m.source]
	switch {
	case m.target == "":
		delete(c.fields, m.source)
		return nil
	case !isMapped(m.target):
		c.fields[m.source] = field{texts: []string{m.target}}
		return nil
	case value.absent() && m.nested():
		var err error
		if value, err = c.find(m.path, budget); err != nil {
			return err
		}
	}
	if old := c.fields[m.target]; value.empty() || old.mapped && !old.empty() {
		return nil
	}
	converted, err := value.convertFor(m.target)
	if err != nil {
		return err
	}
	if isMapped(m.source) && m.source != m.target {
		// The two fields swap their values, so that none is lost.
		delete(c.fields, m.source)
		if old := c.fields[m.target]; !old.absent() {
			if c.fields[m.source], err = old.convertFor(m.source); err != nil {
				return err
			}
		}
	}
	converted.mapped = true
	c.fields[m.target] = converted
	c.foreign = c.foreign || m.target == fieldTitle || m.target == fieldBody
	return nil
}

// find follows a path into nested JSON. The field is absent if the path leads
// nowhere.
func (c *content) find(path []step, budget *int) (field, error) {
	value, err := c.first(path[0], budget)
	for _, s := range path[1:] {
		if err != nil {
			break
		}
		if *budget -= len(value); *budget < 0 {
			return field{}, errMappedBytes
		}
		value, err = s.from(value)
	}
	return field{json: value}, err
}

var errMappedBytes = errors.New("the mappings search too much JSON; send less, or map fewer fields")

// first returns the value of the field that the first step of a path names.
func (c *content) first(s step, budget *int) (json.RawMessage, error) {
	if !s.json {
		return c.fields[s.name].json, nil
	}
	if literal := c.fields[s.name+jsonMark]; !literal.absent() {
		return literal.json, nil
	}
	f, text := c.fields[s.name], ""
	if len(f.texts) > 0 { // of a form
		text = f.texts[len(f.texts)-1]
	}
	switch *budget -= len(f.json) + len(text); {
	case *budget < 0:
		return nil, errMappedBytes
	case len(f.texts) > 0:
		return jsonOf(text), nil
	}
	return parsed(f.json)
}

// parsed returns the JSON in a JSON string, or nil if the string holds none. Other values are
// returned as they are.
func parsed(value json.RawMessage) (json.RawMessage, error) {
	if jsonType(value) != jsonString {
		return value, nil
	}
	text, err := unquote(value)
	if err != nil {
		return nil, err
	}
	return jsonOf(text), nil
}

// jsonOf returns a text if it is JSON.
func jsonOf(text string) json.RawMessage {
	if value := json.RawMessage(strings.TrimSpace(text)); json.Valid(value) {
		return value
	}
	return nil
}

// errStop ends eachElement once the element is found.
var errStop = errors.New("stop")

// from returns the member or element of value that the step names, or nil if
// there is none.
func (s step) from(value json.RawMessage) (found json.RawMessage, err error) {
	literal := false // the member has the mark in its name
	switch t := jsonType(value); {
	case s.name != "" && t == jsonObject:
		_, err = eachMember(value, func(name string, v json.RawMessage) error {
			switch {
			case s.json && name == s.name+jsonMark:
				found, literal = v, true
			case name == s.name && !literal:
				found = v // the last one counts, as in readJSON
			}
			return nil
		})
	case s.name == "" && t == jsonArray:
		err = eachElement(value, func(n int, v json.RawMessage) error {
			if n == s.index {
				found = v
				return errStop
			}
			return nil
		})
		if err == errStop {
			err = nil
		}
	}
	if s.json && !literal && err == nil {
		return parsed(found)
	}
	return found, err
}

// convertFor returns the value of a foreign field as target takes it: a number
// or a boolean becomes its text. A target that takes one text takes neither an
// object nor an array.
func (f field) convertFor(target string) (field, error) {
	switch t := jsonType(f.json); {
	case len(f.texts) > 0:
	case t == jsonNumber || t == jsonBoolean:
		return field{texts: []string{string(f.json)}}, nil
	case t == jsonObject || t == jsonArray:
		switch target {
		case fieldBody, fieldTitle, fieldType, fieldFormat, fieldIncident:
			return field{}, fmt.Errorf("the source is %s; the field %s must be a string, a number or a boolean", t, target)
		}
	}
	return f, nil
}
