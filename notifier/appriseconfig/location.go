package appriseconfig

import (
	"errors"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// source is the location of a file.
type source struct {
	location string // a path, or an http or https URL
	name     string // the path, or only the host of the URL, which may contain a password
	fetched  bool
	format   string // "yaml" or "text"; "" if the location does not say
}

// dir returns the directory of a local file, or "".
func (s source) dir() string {
	if s.fetched {
		return ""
	}
	return filepath.Dir(s.location)
}

var schemePattern = lazyregexp.New(`^([A-Za-z0-9]{1,32})://`)

// resolve parses a location in the file from. If from is zero, the location is in no file.
func resolve(location string, from source) (source, error) {
	location = strings.TrimSpace(location)
	if location == "" {
		return source{}, errEmptyLocation
	}
	m := schemePattern.FindStringSubmatch(location)
	if m == nil {
		return local(location, "", from)
	}
	switch strings.ToLower(m[1]) {
	case "http", "https":
		u, err := url.Parse(location)
		if err != nil || u.Host == "" {
			return source{}, errors.New("the URL is malformed; write http:// or https:// and a host")
		}
		return source{location: location, name: u.Host, fetched: true, format: formatOf(u.Query().Get("format"), u.Path)}, nil
	case "file":
		name, query, _ := strings.Cut(location[len(m[0]):], "?")
		name, err := url.PathUnescape(name)
		if err != nil {
			return source{}, errors.New("the file:// URL is malformed; write the path of the file")
		}
		values, _ := url.ParseQuery(query)
		return local(name, values.Get("format"), from)
	}
	return source{}, errors.New("the location must be the path of a file, or begin with file://, http:// or https://")
}

// local returns the source of a local file.
func local(name, format string, from source) (source, error) {
	switch {
	case name == "":
		return source{}, errEmptyLocation
	case from.fetched:
		return source{}, errors.New("a file that was fetched cannot include a local file; write the whole URL")
	case from.location != "" && !filepath.IsAbs(name):
		name = filepath.Join(filepath.Dir(from.location), name)
	}
	name = filepath.Clean(name)
	return source{location: name, name: name, format: formatOf(format, filepath.ToSlash(name))}, nil
}

// formatOf returns the format that a location asks for, or that the extension of name
// implies, or "".
func formatOf(asked, name string) string {
	switch strings.ToLower(asked) {
	case "yaml", "text":
		return strings.ToLower(asked)
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return "yaml"
	}
	return ""
}

// isYAML reports whether a file is YAML, by its location or else by its text.
func (f *file) isYAML(text string) bool {
	if f.format != "" {
		return f.format == "yaml"
	}
	return IsYAML(text)
}

// IsYAML reports whether a configuration is YAML, by its first line that is not a
// comment. Otherwise it is in the text format.
func IsYAML(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !isComment(line) {
			return yamlStart.MatchString(line)
		}
	}
	return false
}

// yamlStart matches the first line of a YAML file: a marker or a key.
var yamlStart = lazyregexp.New(`^(---|%YAML|[{&!]|["']?[A-Za-z0-9_]+["']?\s*:(\s|$))`)

func isComment(line string) bool { return line[0] == '#' || line[0] == ';' }
