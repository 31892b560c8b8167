// Package files knows the files that a configuration names, and tells whether their content has
// changed since it was loaded. Nothing of it is part of the configuration: its JSON would differ
// from machine to machine, and a digest of a short secret gives the secret away.
package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// Set is a set of files with what they had in them when they were added. Add the files of a
// setting before it is read, so that no change is missed. The zero Set is empty.
type Set struct {
	digests map[string][sha256.Size]byte // by path
}

// Changed reports whether a file has another content now, or appeared, or is gone.
func (s *Set) Changed() bool {
	for path, before := range s.digests {
		if digest(path) != before {
			return true
		}
	}
	return false
}

// Add adds the file at a path.
func (s *Set) Add(path string) {
	if _, known := s.digests[path]; known {
		return
	}
	if s.digests == nil {
		s.digests = map[string][sha256.Size]byte{}
	}
	s.digests[path] = digest(path)
}

// AddSet adds the files of another set.
func (s *Set) AddSet(other Set) {
	if s.digests == nil {
		s.digests = map[string][sha256.Size]byte{}
	}
	maps.Copy(s.digests, other.digests)
}

// AddPlaceholders adds the files of the placeholders {file.…} in a text.
func (s *Set) AddPlaceholders(text string) {
	_ = placeholder.Each(text, func(name string) error {
		if path, ok := strings.CutPrefix(name, "file."); ok {
			s.Add(path)
		}
		return nil
	})
}

// AddJSON adds the files of the placeholders {file.…} in all texts of a module in JSON.
func (s *Set) AddJSON(module []byte) {
	if !bytes.Contains(module, []byte("{file.")) {
		return
	}
	for d := json.NewDecoder(bytes.NewReader(module)); ; {
		token, err := d.Token()
		if err != nil {
			return
		}
		if text, ok := token.(string); ok {
			s.AddPlaceholders(text)
		}
	}
}

// AddURL adds the files that a URL names, as ?template= does. A relative path is relative to dir.
func (s *Set) AddURL(url, dir string) {
	if !strings.Contains(url, "{") && !notifier.MayNameFiles(url) {
		return
	}
	if url, err := placeholder.ResolveURL(url); err == nil {
		s.addNamed(url, cmp.Or(dir, "."))
	}
}

// addNamed adds the files that a URL without placeholders names.
func (s *Set) addNamed(url, dir string) {
	for _, path := range notifier.FilePaths(url, notifier.Files{Dir: dir}) {
		s.Add(path)
	}
}

// AddImport adds a configuration file of Apprise and the files that it includes and names. It
// fetches nothing: what is at a web address is not part of the set.
func (s *Set) AddImport(location string) {
	location, err := placeholder.Resolve(location)
	if err != nil {
		return
	}
	read := func(_ context.Context, location string) ([]byte, error) {
		if strings.Contains(location, "://") {
			return nil, nil // an empty file, so that Load goes on
		}
		s.Add(location)
		f, err := open(location)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return appriseconfig.ReadAll(f)
	}
	entries, _, err := appriseconfig.Load(context.Background(), location, read)
	if err != nil {
		return // the error shows when the configuration loads
	}
	for _, e := range entries {
		s.addNamed(e.URL, e.Dir)
	}
}

// digest returns a digest of the content of a file, which is zero for one that cannot be read.
func digest(path string) (sum [sha256.Size]byte) {
	f, err := open(path)
	if err != nil {
		return sum
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return sum
	}
	hash.Sum(sum[:0])
	return sum
}

// open opens a regular file. Reading a pipe would consume its content, or wait for it.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = os.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
