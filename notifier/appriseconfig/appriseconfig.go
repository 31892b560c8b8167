// Package appriseconfig parses the configuration files of Apprise, text and YAML,
// and returns the destinations in them. The caller reads the files and parses the
// notification URLs.
//
// The formats are described at https://appriseit.com/config/.
package appriseconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Limits of a configuration with all its includes.
const (
	maxDepth   = 5 // includes within includes
	maxFiles   = 100
	maxEntries = 10_000
)

// MaxErrors is the maximum number of mistakes, and of warnings, that [Load] returns.
// It ignores further ones.
const MaxErrors = 100

// Entry is one destination.
type Entry struct {
	// URL is the notification URL. Options of the entry, except tags, are in its
	// query. It may be invalid: Load does not check it. It may have variables such as
	// ${NAME}, which the caller replaces, or [notifier.VariableURL] if they are in Template.
	URL string

	// Template has the variables of the URL that the template of a YAML file declares. Messages set
	// their values.
	Template []notifier.Variable

	// Tags are the tags of the entry, those in its URL, the tags that the file gives to
	// all its entries, and the groups that contain one of these.
	Tags []string

	// File and Line are the position of the entry.
	File string
	Line int

	// Include is the line in the first file that includes File, directly or through
	// other files. It is 0 for an entry of the first file.
	Include int

	// Dir is the directory of File, or "" if it comes from a server.
	Dir string
}

// Error is a mistake in a file. Its text quotes nothing of the file, which may contain secrets,
// except keys that the format defines.
type Error struct {
	File    string // the path, or the host that the file was fetched from
	Line    int    // from 1 on; 0 for the file as a whole
	Include int    // as in Entry
	Problem string
	Err     error // the error of reading the file, or nil
}

func (e *Error) Error() string { return place(e.File, e.Line) + e.Problem }

// Unwrap returns the error of reading the file.
func (e *Error) Unwrap() error { return e.Err }

// Errors are the mistakes in a configuration. There is at least one.
type Errors []*Error

// Error returns the text of the first mistake.
func (e Errors) Error() string { return e[0].Error() }

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// Warning is something in a file that is ignored. Its text does not quote the file.
type Warning struct {
	File    string // as in Error
	Line    int    // as in Error
	Include int    // as in Entry
	Problem string
}

func (w Warning) String() string { return place(w.File, w.Line) + w.Problem }

// place returns the prefix of an error or a warning: the position in a file.
func place(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

// Load reads the configuration at location and the files that it includes. location is the path of
// a file, or a URL that begins with file://, http:// or https://. Load calls read with a path, or
// with an http or https URL. A path in a file is relative to that file. A file that was fetched
// cannot include local files. A group applies to the entries of its file.
//
// The warnings tell what Load ignores. The error is an [Errors] with at most [MaxErrors] mistakes.
// Load continues after a mistake and returns the valid entries as well. It accepts the entries that
// Apprise loads: an entry that Apprise skips is a mistake, and a part of an entry without effect
// there is a warning.
func Load(
	ctx context.Context, location string, read func(ctx context.Context, location string) ([]byte, error),
) (entries []Entry, warnings []Warning, err error) {
	s, err := resolve(location, source{})
	if err != nil {
		return nil, nil, Errors{{File: "the location", Problem: err.Error()}}
	}
	l := &loader{read: read}
	l.load(ctx, s, nil, 0)
	if len(l.errs) > 0 {
		err = l.errs
	}
	return l.entries, l.warnings, err
}

// loader reads a configuration.
type loader struct {
	read     func(ctx context.Context, location string) ([]byte, error)
	files    int
	entries  []Entry
	warnings []Warning
	errs     Errors
}

// fail records a mistake.
func (l *loader) fail(e *Error) {
	if len(l.errs) < MaxErrors {
		l.errs = append(l.errs, e)
	}
}

// load reads a file and its includes. stack has the locations of the files that
// include it, the outermost first. include is the field Include of its entries.
func (l *loader) load(ctx context.Context, s source, stack []string, include int) {
	if l.files++; l.files > maxFiles {
		l.fail(&Error{File: s.name, Include: include, Problem: fmt.Sprintf("there are more than %d files with all includes", maxFiles)})
		return
	}
	content, err := l.read(ctx, s.location)
	if err != nil {
		l.fail(&Error{File: s.name, Include: include, Problem: "reading the file: " + err.Error(), Err: err})
		return
	}
	f := &file{source: s, loader: l, include: include}
	f.parse(content)
	f.applyGroups()
	if len(f.entries) == 0 && len(f.includes) == 0 {
		f.warn(0, "the file has no destinations")
	}
	l.entries = append(l.entries, f.entries...)
	if len(l.entries) > maxEntries {
		f.fail(0, fmt.Sprintf("there are more than %d destinations", maxEntries))
		return
	}
	stack = append(slices.Clip(stack), s.location)
	for _, i := range f.includes {
		included, err := resolve(i.text, s)
		switch {
		case err != nil:
			f.fail(i.line, "include: "+err.Error())
		case slices.Contains(stack, included.location):
			f.fail(i.line, "include: the file includes itself")
		case len(stack) > maxDepth:
			f.fail(i.line, fmt.Sprintf("include: includes are nested more than %d deep", maxDepth))
		case l.files <= maxFiles && len(l.entries) <= maxEntries:
			l.load(ctx, included, stack, cmp.Or(include, i.line))
		}
	}
}

// file is the content of one file.
type file struct {
	source
	loader   *loader // gets mistakes and warnings
	mistakes int     // number of mistakes
	include  int     // of the entries
	entries  []Entry
	includes []include
	groups   []group
	template []notifier.Variable
}

type include struct {
	text string
	line int
}

// fail records a mistake in a line; 0 is the whole file.
func (f *file) fail(line int, problem string) {
	f.mistakes++
	f.loader.fail(&Error{File: f.name, Line: line, Include: f.include, Problem: problem})
}

func (f *file) warn(line int, problem string) {
	// Aliases can lead to the same line many times.
	if w := (Warning{f.name, line, f.include, problem}); len(f.loader.warnings) < MaxErrors && !slices.Contains(f.loader.warnings, w) {
		f.loader.warnings = append(f.loader.warnings, w)
	}
}

func (f *file) parse(content []byte) {
	text := strings.TrimPrefix(string(content), "\uFEFF")
	switch {
	case !utf8.ValidString(text):
		f.fail(0, "the file is not text in UTF-8")
	case f.isYAML(text):
		f.parseYAML(text)
	default:
		f.parseText(text)
	}
}

// add adds an entry. tags are as in the file, possibly with a priority.
func (f *file) add(line int, url string, tags []string) {
	if len(f.entries) == maxEntries {
		f.fail(line, fmt.Sprintf("there are more than %d destinations", maxEntries))
		return
	}
	url, inURL := cutTags(url)
	if tags, ok := f.entryTags(line, append(slices.Clip(tags), inURL...)); ok {
		f.entries = append(f.entries, Entry{
			URL: url, Template: notifier.VariablesIn(url, f.template), Tags: tags, File: f.name, Line: line, Include: f.include, Dir: f.dir(),
		})
	}
}

var errEmptyLocation = errors.New("the location is empty; write the path of a file or its URL")

// MaxSize is the size of the largest file that [ReadAll] reads, in bytes.
const MaxSize = 1 << 20

// ReadAll returns the content of a configuration file.
func ReadAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxSize {
		return nil, errors.New("the file is larger than 1 MiB")
	}
	return content, nil
}
