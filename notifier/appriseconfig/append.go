package appriseconfig

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Errors of [Append].
var (
	errUnreadable = errors.New("the configuration has a mistake; correct it first, or write the URL into it yourself")
	errNoPlace    = errors.New("the place for another URL cannot be found automatically; write the URL into the list urls yourself")
)

// Append returns a configuration with another destination at its end. The rest of the text and its
// destinations stay the same. The configuration is in YAML or in the text format, and may be empty.
func Append(text string, isYAML bool, url string, tags []string) (string, error) {
	before, err := entriesOf(text, isYAML)
	if err != nil {
		return "", errUnreadable
	}
	lineBreak := "\n"
	if strings.Contains(text, "\r\n") {
		lineBreak = "\r\n"
	}
	var out string
	if isYAML {
		out, err = appendYAML(text, url, tags, lineBreak)
		if err != nil {
			return "", err
		}
	} else {
		line := url
		if len(tags) > 0 {
			line = strings.Join(tags, ",") + "=" + url
		}
		out = endLine(text, lineBreak) + line + lineBreak
	}
	after, err := entriesOf(out, isYAML)
	if err != nil || len(after) != len(before)+1 {
		return "", errNoPlace
	}
	for i, e := range before {
		if after[i].URL != e.URL || !slices.Equal(after[i].Tags, e.Tags) {
			return "", errNoPlace
		}
	}
	added := after[len(before)]
	if added.URL != url || slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(added.Tags, tag) }) {
		return "", errNoPlace
	}
	return out, nil
}

// entriesOf returns the destinations of a configuration without those that it
// includes.
func entriesOf(text string, isYAML bool) ([]Entry, error) {
	location := "file://configuration.txt?format=text"
	if isYAML {
		location = "configuration.yml"
	}
	first := true
	entries, _, err := Load(context.Background(), location, func(context.Context, string) ([]byte, error) {
		if first {
			first = false
			return []byte(text), nil
		}
		return nil, nil
	})
	return entries, err
}

// endLine returns text with a line break at its end.
func endLine(text, lineBreak string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + lineBreak
}

// appendYAML inserts an item at the end of the list urls, or appends the list.
func appendYAML(text, url string, tags []string, lineBreak string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(text, "\uFEFF")), &document); err != nil {
		return "", errUnreadable
	}
	lines := strings.SplitAfter(endLine(text, lineBreak), "\n")
	lines = lines[:len(lines)-1]
	end, indent, list := len(lines), "  ", "urls:"+lineBreak
	if len(document.Content) > 0 && !isNull(document.Content[0]) {
		root := document.Content[0]
		if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
			return "", errNoPlace
		}
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value != "urls" {
				continue
			}
			urls := root.Content[i+1]
			switch {
			case isNull(urls) && urls.Value == "":
			case urls.Kind != yaml.SequenceNode || urls.Style&yaml.FlowStyle != 0 || len(urls.Content) == 0:
				return "", errNoPlace
			default:
				indent = strings.Repeat(" ", urls.Column-1)
			}
			if list = ""; i+2 < len(root.Content) {
				end = root.Content[i+2].Line - 1
			}
		}
	}
	// Comments and blank lines belong to the item after them, if there is one.
	at := end
	for at > 0 {
		line := strings.TrimSpace(lines[at-1])
		if line != "" && line[0] != '#' && line != "..." {
			break
		}
		at--
	}
	item := list + indent + "- " + url + lineBreak
	if len(tags) > 0 {
		// A key of one line has at most 1024 characters (YAML 1.2.2, section 7.4.2).
		if tag := "tag: " + strings.Join(tags, ", "); len(url) < 1000 {
			item = list + indent + "- " + url + ":" + lineBreak + indent + "    " + tag + lineBreak
		} else {
			item = list + indent + "- ? " + url + lineBreak + indent + "  : " + tag + lineBreak
		}
	}
	return strings.Join(lines[:at], "") + item + strings.Join(lines[at:], ""), nil
}
