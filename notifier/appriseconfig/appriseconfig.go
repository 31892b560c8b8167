// Package appriseconfig parses the configuration files of Apprise, text and YAML,
// and returns the destinations in them. The caller reads the files and parses the
// notification URLs.
//
// The formats are described at https://appriseit.com/config/.
package appriseconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a configuration with all its includes.
const (
	maxDepth   = 5 // includes within includes
	maxFiles   = 100
	maxEntries = 10_000
)

// Entry is one destination.
type Entry struct {
	// URL is the notification URL. Options of the entry, except tags, are in its
	// query. It may be invalid: Load does not check it.
	URL string

	// Tags are the tags of the entry, the tags that the file gives to all its
	// entries, and the groups that contain one of these.
	Tags []string

	// File and Line are the position of the entry.
	File string
	Line int

	// Dir is the directory of File, or "" if it comes from a server.
	Dir string
}

// Error is a mistake in a file. Its text does not quote the file, which may contain
// secrets, except keys that the format defines.
type Error struct {
	File    string // the path, or the host that the file was fetched from
	Line    int    // from 1 on; 0 for the file as a whole
	Problem string
	Err     error // the error of reading the file, or nil
}

func (e *Error) Error() string { return place(e.File, e.Line) + e.Problem }

// Unwrap returns the error of reading the file.
func (e *Error) Unwrap() error { return e.Err }

// place returns the prefix of an error or a warning: the position in a file.
func place(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Load reads the configuration at location and the files that it includes. location
// is the path of a file, or a URL that begins with file://, http:// or https://. Load
// calls read with a path, or with an http or https URL. A path in a file is relative
// to that file. A file that was fetched cannot include local files. A group applies to
// the entries of its file.
//
// The warnings tell, with file and line, what Load ignores. The error is an [*Error]
// with the first mistake.
func Load(ctx context.Context, location string, read func(ctx context.Context, location string) ([]byte, error)) (entries []Entry, warnings []string, err error) {
	l := &loader{read: read}
	s, err := resolve(location, source{})
	if err != nil {
		return nil, nil, &Error{File: "the location", Problem: err.Error()}
	}
	if err := l.load(ctx, s, nil); err != nil {
		return nil, nil, err
	}
	return l.entries, l.warnings, nil
}

// loader reads a configuration.
type loader struct {
	read     func(ctx context.Context, location string) ([]byte, error)
	files    int
	entries  []Entry
	warnings []string
}

// load reads a file and its includes. stack has the locations of the files that
// include it, the outermost first.
func (l *loader) load(ctx context.Context, s source, stack []string) error {
	if l.files++; l.files > maxFiles {
		return &Error{File: s.name, Problem: fmt.Sprintf("there are more than %d files with all includes", maxFiles)}
	}
	content, err := l.read(ctx, s.location)
	if err != nil {
		return &Error{File: s.name, Problem: "reading the file: " + err.Error(), Err: err}
	}
	f := &file{source: s}
	if err := f.parse(content); err != nil {
		return err
	}
	f.applyGroups()
	if len(f.entries) == 0 && len(f.includes) == 0 {
		f.warn(0, "the file has no destinations")
	}
	l.entries = append(l.entries, f.entries...)
	l.warnings = append(l.warnings, f.warnings...)
	if len(l.entries) > maxEntries {
		return f.mistake(0, fmt.Sprintf("there are more than %d destinations", maxEntries))
	}
	stack = append(slices.Clip(stack), s.location)
	for _, i := range f.includes {
		included, err := resolve(i.text, s)
		switch {
		case err != nil:
			return f.mistake(i.line, "include: "+err.Error())
		case slices.Contains(stack, included.location):
			return f.mistake(i.line, "include: the file includes itself")
		case len(stack) > maxDepth:
			return f.mistake(i.line, fmt.Sprintf("include: includes are nested more than %d deep", maxDepth))
		}
		if err := l.load(ctx, included, stack); err != nil {
			return err
		}
	}
	return nil
}

// file is the content of one file.
type file struct {
	source
	entries  []Entry
	includes []include
	groups   []group
	warnings []string
}

type include struct {
	text string
	line int
}

// mistake returns an [*Error] for a line; 0 is the whole file.
func (f *file) mistake(line int, problem string) error {
	return &Error{File: f.name, Line: line, Problem: problem}
}

func (f *file) warn(line int, problem string) {
	f.warnings = append(f.warnings, place(f.name, line)+problem)
}

func (f *file) parse(content []byte) error {
	text := strings.TrimPrefix(string(content), "\uFEFF")
	if !utf8.ValidString(text) {
		return f.mistake(0, "the file is not text in UTF-8")
	}
	if f.isYAML(text) {
		return f.parseYAML(text)
	}
	return f.parseText(text)
}

// add adds an entry. tags are as in the file, possibly with a priority.
func (f *file) add(line int, url string, tags []string) error {
	if len(f.entries) == maxEntries {
		return f.mistake(line, fmt.Sprintf("there are more than %d destinations", maxEntries))
	}
	tags, err := f.entryTags(line, tags)
	if err != nil {
		return err
	}
	f.entries = append(f.entries, Entry{URL: url, Tags: tags, File: f.name, Line: line, Dir: f.dir()})
	return nil
}

var errEmptyLocation = errors.New("the location is empty; write the path of a file or its URL")
