package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mapping is one rule of the query string, ?:source=target, by which a payload
// in somebody else's shape is read: what is in source is taken for the field
// target.
type mapping struct {
	source string
	path   []step // where source is a path such as a.b[0].c
	target string
}

// step is one member or element on the way into nested JSON.
type step struct {
	name  string
	index int // within an array, where name is ""
}

// What mappings may measure. maxReach bounds the work: it is how much JSON all
// mappings of a request together may go through.
const (
	maxMappings = 64
	maxSteps    = 16
	maxReach    = 64 << 20
)

// newMapping reads a rule. An empty target removes the source. A target that
// is no field is a mistake, except where the source is one: then it is the
// text that the field gets.
func newMapping(source, target string) (mapping, error) {
	m := mapping{source: source, target: target}
	var err error
	if m.path, err = parsePath(source); err != nil {
		return m, m.wrong(err)
	}
	nested := len(m.path) > 1
	switch {
	case target == "" && nested:
		return m, m.wrong(errors.New("only a whole field can be removed, not a part of one"))
	case target != "" && !isField(target) && (nested || !isField(source)):
		return m, m.wrong(errors.New("the target must be urls, body, title, type, format, tag, tags, attach, attachment or attachments"))
	}
	return m, nil
}

// wrong names the mapping in an error. Its target may be a text or a URL of
// the client's and is left out.
func (m mapping) wrong(err error) *refusal {
	source := m.source
	if len(source) > 100 {
		source = strings.ToValidUTF8(source[:100], "") + "…"
	}
	return badRequest("the mapping ?:%s: %w", source, err)
}

// parsePath reads a path such as a.b[0].c. A source without a dot or bracket
// is a path of one step.
func parsePath(s string) (path []step, err error) {
	if s == "" || len(s) > 1024 {
		return nil, errors.New("the name of a field has 1 to 1024 characters")
	}
	for first := true; s != ""; first = false {
		if len(path) == maxSteps {
			return nil, fmt.Errorf("the path has more than %d steps", maxSteps)
		}
		if s[0] == '[' && !first {
			digits, rest, ok := strings.Cut(s[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !ok || err != nil {
				return nil, errors.New("the brackets in the path must hold a number, as in items[0]")
			}
			path, s = append(path, step{index: int(n)}), rest
			continue
		}
		if !first {
			if s[0] != '.' {
				return nil, errors.New("an element in the path must be followed by a dot or another element, as in items[0].name")
			}
			s = s[1:]
		}
		end := strings.IndexAny(s, ".[]")
		if end < 0 {
			end = len(s)
		}
		if end == 0 || end < len(s) && s[end] == ']' {
			return nil, errors.New("the path must be names with dots between them and numbers in brackets, as in items[0].name")
		}
		path, s = append(path, step{name: s[:end]}), s[end:]
	}
	return path, nil
}

// remap applies the mappings in their order, each to what the one before has
// made.
func (p *payload) remap(mappings []mapping) error {
	if len(mappings) > 0 && p.fields == nil {
		p.fields = map[string]field{}
	}
	reach := maxReach
	for _, m := range mappings {
		if err := p.apply(m, &reach); err != nil {
			return m.wrong(err)
		}
	}
	return nil
}

func (p *payload) apply(m mapping, reach *int) error {
	value := p.fields[m.source]
	present := !value.absent()
	switch {
	case m.target == "":
		delete(p.fields, m.source)
		return nil
	case !isField(m.target):
		p.fields[m.source] = field{texts: []string{m.target}}
		return nil
	case !present && len(m.path) > 1:
		var err error
		if value, err = p.find(m.path, reach); err != nil {
			return err
		}
		present = !value.absent()
	}
	if !present {
		return nil
	}
	converted, err := value.forTarget(m.target)
	if err != nil {
		return err
	}
	if isField(m.source) && m.source != m.target {
		// Two fields of ours change places, so that neither gets lost.
		delete(p.fields, m.source)
		if old := p.fields[m.target]; !old.absent() {
			if p.fields[m.source], err = old.forTarget(m.source); err != nil {
				return err
			}
		}
	}
	p.fields[m.target] = converted
	return nil
}

// find follows a path into nested JSON.
func (p *payload) find(path []step, reach *int) (field, error) {
	root, ok := p.fields[path[0].name]
	if !ok {
		return field{}, fmt.Errorf("there is no field %s", path[0].name)
	}
	if len(root.texts) > 0 {
		return field{}, fmt.Errorf("the field %s is a text, which has no parts", path[0].name)
	}
	value := root.json
	for _, s := range path[1:] {
		if *reach -= len(value); *reach < 0 {
			return field{}, errors.New("the mappings go through too much JSON; send less, or map fewer fields")
		}
		var err error
		if value, err = s.from(value); err != nil {
			return field{}, err
		}
	}
	return field{json: value}, nil
}

var errFound = errors.New("found")

// from takes the step from a JSON value to a part of it.
func (s step) from(value json.RawMessage) (part json.RawMessage, err error) {
	kind := kindOf(value)
	if s.name == "" {
		if kind != "an array" {
			return nil, fmt.Errorf("the path has element %d of what is no array but %s", s.index, kind)
		}
		err = elements(value, func(n int, v json.RawMessage) error {
			if n == s.index {
				part = v
				return errFound
			}
			return nil
		})
	} else {
		if kind != "an object" {
			return nil, fmt.Errorf("the path has %s of what is no object but %s", s.name, kind)
		}
		_, err = members(value, func(name string, v json.RawMessage) error {
			if name == s.name {
				part = v // the last one counts, as it does at the top
			}
			return nil
		})
	}
	switch {
	case err != nil && err != errFound:
		return nil, err
	case part == nil && s.name == "":
		return nil, fmt.Errorf("the array has no element %d", s.index)
	case part == nil:
		return nil, fmt.Errorf("there is no %s where the path leads", s.name)
	}
	return part, nil
}

// forTarget makes a value of somebody else's payload fit a field of ours: a
// number or a boolean becomes its text. Where one text is wanted, an object or
// an array is a mistake.
func (f field) forTarget(target string) (field, error) {
	switch kind := kindOf(f.json); {
	case len(f.texts) > 0:
	case kind == "a number" || kind == "a boolean":
		return field{texts: []string{string(f.json)}}, nil
	case kind == "an object" || kind == "an array":
		switch target {
		case fieldBody, fieldTitle, fieldType, fieldFormat:
			return field{}, fmt.Errorf("the source is %s; the field %s must be a string, a number or a boolean", kind, target)
		}
	}
	return f, nil
}
