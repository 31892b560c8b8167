package block

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Fingerprint computes Info.Files. It ignores files that cannot be
// read, because the configuration may be for another machine.
type Fingerprint struct{ hash hash.Hash }

// String returns the fingerprint, or "" if there are no files.
func (f *Fingerprint) String() string {
	if f.hash == nil {
		return ""
	}
	return fmt.Sprintf("%x", f.hash.Sum(nil)[:8])
}

// Add adds the file at path, with its modification time and size.
func (f *Fingerprint) Add(path string) {
	if f.hash == nil {
		f.hash = sha256.New()
	}
	fmt.Fprintf(f.hash, "%q\n", path)
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if info, err := os.Stat(target); err == nil {
		fmt.Fprintf(f.hash, "%q %d %d\n", target, info.ModTime().UnixNano(), info.Size())
	}
}

// AddPlaceholders adds the files of the placeholders {file.…} in text.
func (f *Fingerprint) AddPlaceholders(text string) {
	_ = placeholder.Each(text, func(name string) error {
		if path, ok := strings.CutPrefix(name, "file."); ok {
			f.Add(path)
		}
		return nil
	})
}

// AddURL adds the files of a URL: the files of its placeholders, and the files that it names. A
// relative path is relative to dir.
func (f *Fingerprint) AddURL(url, dir string) {
	if !strings.Contains(url, "{") && !notifier.MayNameFiles(url) {
		return
	}
	f.AddPlaceholders(url)
	if url, err := placeholder.ResolveURL(url); err == nil {
		f.AddNamed(url, cmp.Or(dir, "."))
	}
}

// AddNamed adds the files that a URL without placeholders names.
func (f *Fingerprint) AddNamed(url, dir string) {
	for _, path := range notifier.FilePaths(url, notifier.Files{Dir: dir}) {
		f.Add(path)
	}
}
