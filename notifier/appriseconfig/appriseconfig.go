// Package appriseconfig reads the configuration files of Apprise, of both
// kinds: text and YAML. It understands what they say of destinations, and
// leaves it to others to read the files and to make use of the URLs.
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

// What a configuration may measure, all files together.
const (
	maxDepth   = 5 // includes within includes
	maxFiles   = 100
	maxEntries = 10_000
)

// Entry is one destination.
type Entry struct {
	// URL is the notification URL. What the file says about the entry besides
	// its tags is in the URL's query. It may be no URL of a service at all.
	URL string

	// Tags are those of the entry itself, those that the file gives to all its
	// entries, and the groups that one of these is in.
	Tags []string

	// File and Line are where the entry stands.
	File string
	Line int
}

// Error is a mistake in a file. Its text holds nothing of what the file says
// but names that the format itself gives, since anything else may be a URL.
type Error struct {
	File    string // the path, or the host that the file was fetched from
	Line    int    // from 1 on; 0 for the file as a whole
	Problem string
	Err     error // what reading the file has failed with, or nil
}

func (e *Error) Error() string { return place(e.File, e.Line) + e.Problem }

// Unwrap gives what reading the file has failed with.
func (e *Error) Unwrap() error { return e.Err }

func place(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Load reads the configuration at a location, which is the path of a file, or
// a URL that begins with file://, http:// or https://; and all that it
// includes. read gets either a path or an http or https URL. A path in a file
// is relative to that file, and a file that was fetched includes no local
// ones. Groups hold for the file that they stand in.
//
// The warnings tell, with file and line, what is passed over. The error is an
// [*Error] with the first mistake.
func Load(ctx context.Context, location string, read func(ctx context.Context, location string) ([]byte, error)) (entries []Entry, warnings []string, err error) {
	l := &loading{read: read}
	s, err := resolve(location, source{})
	if err != nil {
		return nil, nil, &Error{File: "the location", Problem: err.Error()}
	}
	if err := l.load(ctx, s, nil); err != nil {
		return nil, nil, err
	}
	return l.entries, l.warnings, nil
}

// loading is a configuration that is being read.
type loading struct {
	read     func(ctx context.Context, location string) ([]byte, error)
	files    int
	entries  []Entry
	warnings []string
}

// load reads a file and what it includes. stack holds the files that it is
// included from, the first one first.
func (l *loading) load(ctx context.Context, s source, stack []string) error {
	if l.files++; l.files > maxFiles {
		return &Error{File: s.name, Problem: fmt.Sprintf("there are more than %d files, all includes together", maxFiles)}
	}
	content, err := l.read(ctx, s.location)
	if err != nil {
		return &Error{File: s.name, Problem: "reading it: " + err.Error(), Err: err}
	}
	f := &file{source: s}
	if err := f.parse(content); err != nil {
		return err
	}
	f.spread()
	if len(f.entries) == 0 && len(f.includes) == 0 {
		f.warn(0, "it names no destination")
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
			return f.mistake(i.line, "include: the file is included by itself")
		case len(stack) > maxDepth:
			return f.mistake(i.line, fmt.Sprintf("include: files may include others at most %d deep", maxDepth))
		}
		if err := l.load(ctx, included, stack); err != nil {
			return err
		}
	}
	return nil
}

// file is what one file says.
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

func (f *file) mistake(line int, problem string) error {
	return &Error{File: f.name, Line: line, Problem: problem}
}

func (f *file) warn(line int, problem string) {
	f.warnings = append(f.warnings, place(f.name, line)+problem)
}

func (f *file) parse(content []byte) error {
	text := strings.TrimPrefix(string(content), "\uFEFF")
	if !utf8.ValidString(text) {
		return f.mistake(0, "it is no text in UTF-8")
	}
	if f.isYAML(text) {
		return f.parseYAML(text)
	}
	return f.parseText(text)
}

// add notes a destination. tags are as the file writes them.
func (f *file) add(line int, url string, tags []string) error {
	if len(f.entries) == maxEntries {
		return f.mistake(line, fmt.Sprintf("there are more than %d destinations", maxEntries))
	}
	tags, err := f.entryTags(line, tags)
	if err != nil {
		return err
	}
	f.entries = append(f.entries, Entry{URL: url, Tags: tags, File: f.name, Line: line})
	return nil
}

var errEmptyLocation = errors.New("the name of a file or its address is expected")
