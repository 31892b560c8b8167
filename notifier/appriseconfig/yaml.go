package appriseconfig

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// yamlProblem matches the YAML package's description of a mistake, without its quotation of the
// file.
var yamlProblem = lazyregexp.New(`^yaml: (?:line (\d+): )?([a-z ,-]*[a-z])`)

func (f *file) parseYAML(text string) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var document, second yaml.Node
	err := d.Decode(&document)
	if errors.Is(err, io.EOF) {
		return
	}
	if err == nil {
		if err = d.Decode(&second); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			f.fail(second.Line, "the file has a second YAML document; only one is allowed")
			return
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
		f.fail(line, "the YAML is malformed: "+problem)
		return
	}
	f.parseRoot(deref(document.Content[0]))
}

func (f *file) parseRoot(root *yaml.Node) {
	if isNull(root) {
		return
	}
	if root.Kind != yaml.MappingNode {
		f.fail(root.Line, "the file must be a map with the key urls")
		return
	}
	f.checkSections(root)
	var urls, tag, tags *yaml.Node
	for _, p := range f.pairs(root) {
		switch v := p.value; p.key.Value {
		case "version":
			if !isVersion(v) {
				f.fail(v.Line, "version must be 1 or 2")
			}
		case "template":
			f.parseTemplate(v)
		case "urls":
			urls = v
		case "tag":
			tag = v
		case "tags":
			tags = v
		case "groups":
			f.parseGroups(v)
		case "include":
			f.parseIncludes(v)
		case "asset":
			f.warn(p.key.Line, "asset is ignored; the name and the pictures of the sender are set elsewhere")
		default:
			f.warn(p.key.Line, "unknown key is ignored; the keys are version, template, urls, tag, tags, groups, include and asset")
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
		global = splitAll(f.texts(tag, "a tag"))
	}
	for i, text := range global { // once, and not for each entry
		global[i] = f.cleanTag(tag.Line, text)
	}
	f.parseURLs(urls, global)
}

// parseURLs reads the list of destinations.
func (f *file) parseURLs(urls *yaml.Node, global []string) {
	if urls == nil || isNull(urls) {
		return
	}
	if urls.Kind != yaml.SequenceNode {
		f.fail(urls.Line, "urls must be a list; begin each item with a hyphen")
		return
	}
	for _, item := range urls.Content {
		item = deref(item)
		switch {
		case item.Kind == yaml.ScalarNode && isURL(item.Value):
			f.addWith(item.Line, item.Value, nil, global)
		case item.Kind == yaml.MappingNode:
			f.parseItem(item, global)
		default:
			f.fail(item.Line, "the item is not a notification URL; write one that begins with a scheme and ://")
		}
	}
}

// parseItem reads a URL with options, which are in the same mapping as the URL or
// below it. A list below the URL makes one destination for each item.
func (f *file) parseItem(item *yaml.Node, global []string) {
	all := f.pairs(item)
	at := slices.IndexFunc(all, func(p pair) bool { return isURL(p.key.Value) })
	if at < 0 {
		f.fail(item.Line, "the item has no notification URL as a key; write one that begins with a scheme and ://")
		return
	}
	text, below := all[at].key, all[at].value
	all = slices.Delete(all, at, at+1)
	all = slices.DeleteFunc(all, func(p pair) bool {
		if !isURL(p.key.Value) {
			return false
		}
		f.fail(p.key.Line, "the item has two URLs; begin a new one with a hyphen")
		return true
	})
	beside, ok := f.options(all)
	if !ok {
		return
	}
	switch {
	case isNull(below):
		f.addWith(text.Line, text.Value, beside, global)
		return
	case below.Kind == yaml.MappingNode:
		f.parseOptions(text.Line, text.Value, below, beside, global)
		return
	case below.Kind == yaml.ScalarNode:
		f.warn(text.Line, "the text below the URL is ignored; write options there, for example tag: ops")
		f.addWith(text.Line, text.Value, beside, global)
		return
	case below.Kind != yaml.SequenceNode || len(below.Content) == 0:
		f.fail(text.Line, "below a URL write options, for example tag: ops, or a list of options")
		return
	}
	for _, one := range below.Content {
		if one = deref(one); one.Kind != yaml.MappingNode {
			f.fail(one.Line, "each item of the list below a URL must have options, for example tag: ops")
			continue
		}
		f.parseOptions(one.Line, text.Value, one, beside, global)
	}
}

func (f *file) parseOptions(line int, url string, n *yaml.Node, beside []option, global []string) {
	below, ok := f.options(f.pairs(n))
	if !ok {
		return
	}
	f.addWith(line, url, override(beside, below), global)
}

// options returns the options in a map. It reports false if one of them has a value that no option
// can have, because without that option the destination may be a different one.
func (f *file) options(all []pair) (out []option, ok bool) {
	for _, p := range all {
		if p.key.Value == "schema" {
			continue // the URL has it as its scheme
		}
		mistakes := f.mistakes
		o := option{name: p.key.Value, values: f.texts(p.value, "an option"), line: p.key.Line}
		if f.mistakes > mistakes {
			return nil, false
		}
		out = append(out, o)
	}
	return onePassword(out), true
}

// addWith adds an entry with options. global are the tags of all entries.
func (f *file) addWith(line int, url string, options []option, global []string) {
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
	f.add(line, withOptions(strings.TrimSpace(url), options), append(tags, global...))
}

// parseGroups reads groups: a map of names to tags, or a list of such maps.
func (f *file) parseGroups(n *yaml.Node) {
	maps := []*yaml.Node{n}
	switch {
	case isNull(n):
		return
	case n.Kind == yaml.SequenceNode:
		maps = n.Content
	}
	for _, m := range maps {
		switch m = deref(m); {
		case m.Kind == yaml.MappingNode:
			for _, p := range f.pairs(m) {
				f.addGroups(p.key.Line, splitTags(p.key.Value), splitAll(f.texts(p.value, "a tag")))
			}
		case m != n && m.Kind == yaml.ScalarNode: // a name alone, or nothing
			f.warn(m.Line, "the group has no tags")
		default:
			f.fail(m.Line, "groups must be a map of names to tags, for example ops: [alice, bob]")
		}
	}
}

func (f *file) parseIncludes(n *yaml.Node) {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, item := range list {
		item = deref(item)
		for _, text := range f.texts(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}, "include") {
			for _, location := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
				f.includes = append(f.includes, include{location, item.Line})
			}
		}
	}
}

// texts reads a text or a list of texts. A map in the list counts as its keys, because "- ops:" is
// a map. Anything else is a mistake and is left out.
func (f *file) texts(n *yaml.Node, what string) (out []string) {
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	case n.Kind != yaml.SequenceNode:
		f.fail(n.Line, what+" must be a text or a list of texts")
		return nil
	}
	for _, item := range n.Content {
		switch item = deref(item); {
		case isNull(item):
		case item.Kind == yaml.ScalarNode:
			out = append(out, item.Value)
		case item.Kind == yaml.MappingNode && what != "an option":
			for _, p := range f.pairs(item) {
				out = append(out, p.key.Value)
			}
		default:
			f.fail(item.Line, what+" must be a text or a list of texts")
		}
	}
	return out
}

func splitAll(texts []string) (tags []string) {
	for _, text := range texts {
		tags = append(tags, splitTags(text)...)
	}
	return tags
}

// pair is a key of a map and its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the keys and values of a map in order. If a key occurs twice, the last value
// counts. Pairs merged in by << come last and are replaced by the map's own.
func (f *file) pairs(n *yaml.Node) (out []pair) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), deref(n.Content[i+1])
		same := func(p pair) bool { return p.key.Value == key.Value }
		switch {
		case key.Kind != yaml.ScalarNode:
			f.fail(key.Line, "the key of a map must be a text")
		case key.Tag == "!!merge" && value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case slices.ContainsFunc(out, same):
			f.warn(key.Line, "the map has the key twice, and this one counts; remove the other")
			out[slices.IndexFunc(out, same)] = pair{key, value}
		default:
			out = append(out, pair{key, value})
		}
	}
	for _, m := range merged {
		if m = deref(m); m.Kind != yaml.MappingNode {
			f.fail(m.Line, "<< must be followed by the alias of a map")
			continue
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			key, value := deref(m.Content[i]), deref(m.Content[i+1])
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				f.fail(key.Line, "the keys of a map that << merges in must be texts")
				continue
			}
			if !slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == key.Value }) {
				out = append(out, pair{key, value})
			}
		}
	}
	return out
}

// deref returns the node that an alias stands for, or n.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isVersion reports whether n is the number 1 or 2, as in "version: 1.0".
func isVersion(n *yaml.Node) bool {
	v, err := strconv.ParseFloat(n.Value, 64)
	return n.Kind == yaml.ScalarNode && err == nil && (v == 1 || v == 2)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// isURL reports whether s is a URL, which may begin with a variable.
func isURL(s string) bool { return urlStart.MatchString(strings.TrimSpace(s)) }

var urlStart = lazyregexp.New(`^([A-Za-z0-9]{1,32}://|\$\{[A-Za-z_][A-Za-z0-9_]*\})`)
