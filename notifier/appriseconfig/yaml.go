package appriseconfig

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlProblem matches the YAML package's description of a mistake, without what it
// quotes of the file.
var yamlProblem = regexp.MustCompile(`^yaml: (?:line (\d+): )?([a-z ,-]*[a-z])`)

func (f *file) parseYAML(text string) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	var document, second yaml.Node
	err := d.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if err = d.Decode(&second); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			return f.mistake(second.Line, "the file has a second YAML document; only one is allowed")
		}
	}
	if err != nil {
		line, problem := 0, "it cannot be parsed"
		if m := yamlProblem.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
			problem = m[2]
			if strings.HasPrefix(problem, "did not find expected") {
				line++ // the parser, unlike the scanner, counts lines from 0
			}
		}
		return f.mistake(line, "the YAML is malformed: "+problem)
	}
	return f.parseRoot(deref(document.Content[0]))
}

func (f *file) parseRoot(root *yaml.Node) error {
	if isNull(root) {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return f.mistake(root.Line, "the file must be a map with the key urls")
	}
	keys, err := f.pairs(root)
	if err != nil {
		return err
	}
	var urls, tag, tags *yaml.Node
	for _, p := range keys {
		switch v := p.value; p.key.Value {
		case "version":
			if v.Kind != yaml.ScalarNode || v.Value != "1" {
				return f.mistake(v.Line, "version must be 1")
			}
		case "urls":
			urls = v
		case "tag":
			tag = v
		case "tags":
			tags = v
		case "groups":
			err = f.parseGroups(v)
		case "include":
			err = f.parseIncludes(v)
		case "asset":
			f.warn(p.key.Line, "asset is ignored; the gateway's identity has the sender's name and pictures")
		default:
			f.warn(p.key.Line, "unknown key is ignored; the keys are version, urls, tag, tags, groups, include and asset")
		}
		if err != nil {
			return err
		}
	}
	if tag != nil && tags != nil {
		f.warn(tags.Line, "tags is ignored, since there is tag")
	}
	var global []string
	if tag == nil {
		tag = tags
	}
	if tag != nil {
		if global, err = f.texts(tag, "a tag"); err != nil {
			return err
		}
	}
	return f.parseURLs(urls, splitAll(global))
}

// parseURLs reads the list of destinations.
func (f *file) parseURLs(urls *yaml.Node, global []string) error {
	if urls == nil || isNull(urls) {
		return nil
	}
	if urls.Kind != yaml.SequenceNode {
		return f.mistake(urls.Line, "urls must be a list; begin each item with a hyphen")
	}
	for _, item := range urls.Content {
		item = deref(item)
		var err error
		switch {
		case item.Kind == yaml.ScalarNode && isURL(item.Value):
			err = f.addWith(item.Line, item.Value, nil, global)
		case item.Kind == yaml.MappingNode:
			err = f.parseItem(item, global)
		default:
			err = f.mistake(item.Line, "the item is not a notification URL; write one that begins with a scheme and ://")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseItem reads a URL with options, which are in the same mapping as the URL or
// below it. A list below the URL makes one destination for each item.
func (f *file) parseItem(item *yaml.Node, global []string) error {
	all, err := f.pairs(item)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(p pair) bool { return isURL(p.key.Value) })
	if at < 0 {
		return f.mistake(item.Line, "the item has no notification URL as a key; write one that begins with a scheme and ://")
	}
	text, below := all[at].key, all[at].value
	all = slices.Delete(all, at, at+1)
	if i := slices.IndexFunc(all, func(p pair) bool { return isURL(p.key.Value) }); i >= 0 {
		return f.mistake(all[i].key.Line, "the item has two URLs; begin a new one with a hyphen")
	}
	beside, err := f.options(all)
	if err != nil {
		return err
	}
	switch {
	case isNull(below):
		return f.addWith(text.Line, text.Value, beside, global)
	case below.Kind == yaml.MappingNode:
		return f.parseOptions(text.Line, text.Value, below, beside, global)
	case below.Kind != yaml.SequenceNode || len(below.Content) == 0:
		return f.mistake(text.Line, "below a URL write options, for example tag: ops, or a list of options")
	}
	for _, one := range below.Content {
		if one = deref(one); one.Kind != yaml.MappingNode {
			return f.mistake(one.Line, "each item of the list below a URL must have options, for example tag: ops")
		}
		if err := f.parseOptions(one.Line, text.Value, one, beside, global); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) parseOptions(line int, url string, n *yaml.Node, beside []option, global []string) error {
	all, err := f.pairs(n)
	if err != nil {
		return err
	}
	below, err := f.options(all)
	if err != nil {
		return err
	}
	return f.addWith(line, url, override(beside, below), global)
}

func (f *file) options(all []pair) (out []option, err error) {
	for _, p := range all {
		if p.key.Value == "schema" {
			continue // the URL has it as its scheme
		}
		o := option{name: p.key.Value, line: p.key.Line}
		if o.values, err = f.texts(p.value, "an option"); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// addWith adds an entry with options. global are the tags of all entries.
func (f *file) addWith(line int, url string, options []option, global []string) error {
	var own *option
	for i, o := range options {
		switch {
		case !o.isTags():
		case own == nil:
			own = &options[i]
		default:
			if o.name == "tag" {
				own = &options[i]
			}
			f.warn(o.line, "tags is ignored, since there is tag")
		}
	}
	var tags []string
	if own != nil {
		tags = splitAll(own.values)
	}
	return f.add(line, withOptions(strings.TrimSpace(url), options), append(tags, global...))
}

// parseGroups reads groups: a map of names to tags, or a list of such maps.
func (f *file) parseGroups(n *yaml.Node) error {
	maps := []*yaml.Node{n}
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.SequenceNode:
		maps = n.Content
	}
	for _, m := range maps {
		if m = deref(m); m.Kind != yaml.MappingNode {
			return f.mistake(m.Line, "groups must be a map of names to tags, for example ops: [alice, bob]")
		}
		all, err := f.pairs(m)
		if err != nil {
			return err
		}
		for _, p := range all {
			tags, err := f.texts(p.value, "a tag")
			if err != nil {
				return err
			}
			if err := f.addGroups(p.key.Line, splitTags(p.key.Value), splitAll(tags)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *file) parseIncludes(n *yaml.Node) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, item := range list {
		item = deref(item)
		texts, err := f.texts(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}, "include")
		if err != nil {
			return err
		}
		for _, text := range texts {
			for _, location := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
				f.includes = append(f.includes, include{location, item.Line})
			}
		}
	}
	return nil
}

// texts reads a text or a list of texts. A map in the list counts as its keys: "- ops:"
// is a map.
func (f *file) texts(n *yaml.Node, what string) (out []string, err error) {
	switch {
	case isNull(n):
		return nil, nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, f.mistake(n.Line, what+" must be a text or a list of texts")
	}
	for _, item := range n.Content {
		switch item = deref(item); {
		case isNull(item):
		case item.Kind == yaml.ScalarNode:
			out = append(out, item.Value)
		case item.Kind == yaml.MappingNode && what != "an option":
			all, err := f.pairs(item)
			if err != nil {
				return nil, err
			}
			for _, p := range all {
				out = append(out, p.key.Value)
			}
		default:
			return nil, f.mistake(item.Line, what+" must be a text or a list of texts")
		}
	}
	return out, nil
}

func splitAll(texts []string) (tags []string) {
	for _, text := range texts {
		tags = append(tags, splitTags(text)...)
	}
	return tags
}

// pair is a key of a map and its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the keys and values of a map in order. Those that << merges in come
// last; keys of the map itself replace them.
func (f *file) pairs(n *yaml.Node) (out []pair, err error) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), deref(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, f.mistake(key.Line, "the key of a map must be a text")
		case key.Tag == "!!merge" && value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == key.Value }):
			return nil, f.mistake(key.Line, "the map has the key twice")
		default:
			out = append(out, pair{key, value})
		}
	}
	for _, m := range merged {
		if m = deref(m); m.Kind != yaml.MappingNode {
			return nil, f.mistake(m.Line, "<< must be followed by the alias of a map")
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			key, value := deref(m.Content[i]), deref(m.Content[i+1])
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return nil, f.mistake(key.Line, "the keys of a map that << merges in must be texts")
			}
			if !slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == key.Value }) {
				out = append(out, pair{key, value})
			}
		}
	}
	return out, nil
}

// deref returns the node that an alias stands for, or n.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func isURL(s string) bool { return schemePattern.MatchString(strings.TrimSpace(s)) }
