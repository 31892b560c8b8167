package notifier

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Files are the files of this machine that a URL may name. The zero value
// allows none: clients must not read them.
type Files struct {
	// Dir is the directory that relative paths begin in. It is never empty for
	// a URL that may name files.
	Dir string

	// Unread leaves the files unread. It is for a check of a URL on another
	// machine than the one that sends. The destination must not be used to send.
	Unread bool
}

// ParseWithFiles is like [Parse], for a URL that may name files of this machine,
// such as keys and templates. It reads them.
func ParseWithFiles(text string, policy *egress.Policy, files Files) (*Destination, error) {
	d, err := parse(text)
	if err != nil {
		return nil, withLoginRemedy(text, err)
	}
	d.text, d.policy = text, policy
	if err := d.readFiles(files); err != nil {
		return nil, err
	}
	if err := d.finish(); err != nil {
		return nil, withLoginRemedy(text, err)
	}
	return d, nil
}

// ParseWithFiles is like [Sender.Parse], for a URL that may name files of this
// machine. It returns the same destination again if its files are the same, too.
func (s *Sender) ParseWithFiles(text string, policy *egress.Policy, files Files) (*Destination, error) {
	return s.shared.acquire(text, policy, files)
}

// MayNameFiles reports whether the query of a URL has a parameter by which a
// service takes a file.
func MayNameFiles(url string) bool {
	_, query, ok := strings.Cut(url, "?")
	if !ok {
		return false
	}
	scheme, _, _ := strings.Cut(strings.TrimSpace(url), "://")
	entries := registry.entries
	if e := registry.byScheme[strings.ToLower(scheme)]; e != nil {
		entries = []*entry{e}
	}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(part, "=")
		for _, e := range entries {
			if p := e.schema.byName[strings.ToLower(name)]; p != nil && p.kind == KindFile {
				return true
			}
		}
	}
	return false
}

// FilePaths returns the paths of the files that a URL names: a template, a key.
// It reads none of them, and returns nil if the URL cannot be used. What stands
// in place of a file, such as its content in base64, is taken for a path.
func FilePaths(url string, files Files) (paths []string) {
	if !MayNameFiles(url) {
		return nil
	}
	d, err := parse(url)
	if err != nil {
		return nil
	}
	for _, p := range d.schema.files {
		f := (*FileParam)(d.at(p.variable))
		if f.named != "" && !(p.file.web && isWebAddress(f.named)) {
			paths = append(paths, files.path(f.named))
		}
	}
	return paths
}

// FileParam is a file that is a parameter of a URL: see [Schema.File].
type FileParam struct {
	named string // as the URL writes it
	data  []byte // nil if there is none, or if the file is at an address
}

// fileRules are the rules for a parameter that is a file.
type fileRules struct {
	max    int
	inline func(text string) ([]byte, error)
	web    bool
}

// File binds a file of at most max bytes. A URL of the operator names it by its
// path, relative to the file with the URL. See [Param.Inline] and [Param.Web]
// for URLs of clients.
func (s *Schema) File(v *FileParam, name, doc string, max int) *Param {
	*v = FileParam{}
	p := s.declare(KindFile, name, "", doc, unsafe.Pointer(v))
	p.file.max = max
	s.files = append(s.files, p)
	return p
}

// Inline lets a URL have the content of the file in place of its path. f
// returns the content, or an error that continues a sentence that begins with
// the parameter. If there is a file at the path, it takes precedence over
// the inline content.
func (p *Param) Inline(f func(text string) ([]byte, error)) *Param {
	p.mustDescribe(KindFile)
	p.file.inline = f
	return p
}

// Web lets a URL have the http or https address of the file in place of its
// path. The file is fetched for each message, under the rules for the addresses
// that messages to the URL may go to.
func (p *Param) Web() *Param {
	p.mustDescribe(KindFile)
	p.file.web = true
	return p
}

type fileVar FileParam

func (v *fileVar) set(_ *Param, text string) error { v.named = text; return nil }
func (v *fileVar) text(*Param) string              { return (*FileParam)(v).named }

// Given reports whether the URL has the parameter.
func (f *FileParam) Given() bool { return f.named != "" }

// Content returns the content of the file. It returns nil if the URL has no
// file, or has one that is fetched for each message: see [FileParam.Read].
func (f *FileParam) Content() []byte { return f.data }

// Read returns the content of the file, which it fetches if it is at an address.
func (f *FileParam) Read(ctx context.Context, c *Client) ([]byte, error) {
	if f.data != nil || !isWebAddress(f.named) {
		return f.data, nil
	}
	resp, err := c.Do(ctx, &Request{URL: f.named})
	if status, ok := errors.AsType[*StatusError](err); ok {
		// Not wrapped: it says nothing about the destination.
		return nil, fmt.Errorf("the server of the file answered with status %d", status.Code)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching the file: %w", err)
	}
	return resp.Body, nil
}

func isWebAddress(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// filesRead are the files that a destination has read.
type filesRead struct {
	dir    string
	digest [sha256.Size]byte // of their contents
}

// readFiles reads the files that the URL names.
func (d *Destination) readFiles(files Files) error {
	var sum hash.Hash
	for _, p := range d.schema.files {
		f := (*FileParam)(d.at(p.variable))
		if f.named == "" || p.file.web && isWebAddress(f.named) {
			continue
		}
		data, err := p.file.read(f.named, files)
		if err != nil {
			return d.schema.errValue(p, p.described()+" "+err.Error())
		}
		f.data = data
		if sum == nil {
			sum = sha256.New()
		}
		fmt.Fprintf(sum, "%d ", len(data))
		_, _ = sum.Write(data) // never fails
		if files.Dir != "" {
			d.files = &filesRead{dir: files.Dir}
		}
	}
	if d.files != nil {
		sum.Sum(d.files.digest[:0])
	}
	return nil
}

var errNoFiles = errors.New("names a file of the machine that sends, which only URLs in files there can; put the URL into one")

// read returns the content of the file at the path in the URL or, if there is
// no such file, the inline content. It returns nothing if files are to remain
// unread. No error contains the text, which may hold a key.
func (r *fileRules) read(text string, files Files) ([]byte, error) {
	missing := errNoFiles
	if files.Dir != "" && !files.Unread {
		data, err := readFile(files.path(text), r.max)
		if err == nil {
			return data, nil
		}
		missing = fmt.Errorf("names a file that cannot be read (%w)", err)
	}
	if r.inline != nil {
		data, err := r.inline(text)
		if err == nil {
			return data, nil
		}
		missing = fmt.Errorf("%w, and is not the content of a file either: it %w", missing, err)
		if files.Dir == "" {
			missing = err
		}
	}
	if files.Unread {
		return nil, nil
	}
	return nil, missing
}

// path returns the path that a URL names, which may be written as file:///path
// and begin with ~ for the home directory.
func (f Files) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "file://"); ok {
		text, _, _ = strings.Cut(rest, "?")
	}
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(f.Dir, text)
}

// readFile returns the content of a file of 1 to max bytes.
func readFile(path string, max int) ([]byte, error) {
	// Opening a pipe or a device could take forever.
	if info, err := os.Stat(path); err != nil {
		return nil, errs.WithoutPath(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.WithoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	switch {
	case err != nil:
		return nil, errs.WithoutPath(err)
	case len(data) == 0:
		return nil, errors.New("it is empty")
	case len(data) > max:
		return nil, fmt.Errorf("it has more than %d bytes", max)
	}
	return data, nil
}
