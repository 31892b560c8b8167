package appriseconfig

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var templateName = lazyregexp.New(`^\w{1,32}$`)

// checkSections records a mistake for the sections urls and template if they occur twice:
// only one of them would count.
func (f *file) checkSections(root *yaml.Node) {
	for _, name := range []string{"urls", "template"} {
		var found bool
		for i := 0; i+1 < len(root.Content); i += 2 {
			if key := root.Content[i]; key.Kind == yaml.ScalarNode && key.Value == name {
				if found {
					f.fail(key.Line, "the file has a second section "+name+"; write both into one")
				}
				found = true
			}
		}
	}
}

// parseTemplate reads the names that the file declares for ${NAME}, with their defaults: a
// map, or a list of names and maps.
func (f *file) parseTemplate(n *yaml.Node) {
	switch {
	case isNull(n):
	case n.Kind == yaml.MappingNode:
		f.declareAll(n)
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			switch item = deref(item); {
			case item.Kind == yaml.MappingNode:
				f.declareAll(item)
			case item.Kind == yaml.ScalarNode && !isNull(item):
				f.declare(item, nil)
			default:
				f.fail(item.Line, "each item of template must be a name, or a name and its default")
			}
		}
	default:
		f.fail(n.Line, "template must be a map of names to their defaults, or a list of names")
	}
}

func (f *file) declareAll(n *yaml.Node) {
	for _, p := range f.pairs(n) {
		switch {
		case isNull(p.value):
			f.declare(p.key, nil)
		case p.value.Kind != yaml.ScalarNode:
			f.fail(p.value.Line, "the default of a name must be a text")
		case notifier.CheckValue(p.value.Value) != nil:
			f.fail(p.value.Line, "a default has at most 1024 characters, and no line breaks or other control characters")
		default:
			f.declare(p.key, &p.value.Value)
		}
	}
}

// declare adds a name of the template. value is its default, or nil.
func (f *file) declare(name *yaml.Node, value *string) {
	switch {
	case !templateName.MatchString(name.Value):
		f.fail(name.Line, "a name of template has 1 to 32 letters, digits and _")
	case slices.ContainsFunc(f.template, func(v notifier.Variable) bool { return strings.EqualFold(v.Name, name.Value) }):
		f.fail(name.Line, "the template has the name twice, because names ignore case; remove one")
	case len(f.template) == maxNames:
		f.fail(name.Line, "the template has more than 100 names")
	default:
		f.template = append(f.template, notifier.Variable{Name: name.Value, Default: value})
	}
}

const maxNames = 100 // of a template
