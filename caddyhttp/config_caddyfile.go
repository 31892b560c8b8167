package caddyhttp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// CaddyfileInfo has what the Caddyfile adapter records about a block. Leave it
// out of a JSON configuration.
type CaddyfileInfo struct {
	// The positions of the settings, for errors: file and line by the name of
	// the setting. `notify` is the line where the block begins. Example:
	// `{"notify": "Caddyfile:2", "default_urls, URL 1": "Caddyfile:4"}`.
	Lines map[string]string `json:"lines,omitempty"`

	// The lines of keys and their URLs, by file and key: the line where the
	// block of the key begins, and the line of each of its URLs. Example:
	// `{"Caddyfile": {"ops": [5, 6, 7], "dev": [9, 10]}}`.
	Keys map[string]map[string][]int `json:"keys,omitempty"`

	// A fingerprint of the files that `{file.…}`, `import_apprise` and URLs in
	// the block name. It covers the modification time, the size and the target
	// of symbolic links, but not the content. With it, `caddy reload` loads a
	// configuration again when only such a file has changed.
	Files string `json:"files,omitempty"`

	// The number of the block among the directives `notify` of the Caddyfile,
	// from 1 on, and below 0 for those in named routes. Caddy copies the block of a
	// site with several addresses into several servers; by the number, the copies are
	// recognized as one site.
	Block int `json:"block,omitempty"`

	// Where a snippet or a file with `configs` is imported, for errors. Example:
	// `Caddyfile:9 (import saved)`.
	Imports string `json:"imports,omitempty"`
}

// block returns the number of the block, or 0 if it is unknown.
func (c *CaddyfileInfo) block() int {
	if c == nil {
		return 0
	}
	return c.Block
}

// blockLine is the name in CaddyfileInfo.Lines of the line where a block begins.
const blockLine = "notify"

// record records the position of d as the position of a setting.
func (c *CaddyfileInfo) record(setting string, d *caddyfile.Dispenser) {
	if c.Lines == nil {
		c.Lines = map[string]string{}
	}
	c.Lines[setting] = lineOf(d.File(), d.Line())
}

// importsOf returns where the current token of d was imported, or "" if it was not.
// Only the text of an error has it.
func importsOf(d *caddyfile.Dispenser) string {
	_, chain, found := strings.Cut(d.WrapErr(errors.New("")).Error(), " import chain ['")
	if !found {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(chain, "']"), "','", ", ")
}

func lineOf(file string, line int) string { return file + ":" + strconv.Itoa(line) }

// trim drops the positions that are needed only until the settings are loaded.
// There can be one for each URL.
func (c *CaddyfileInfo) trim() {
	if c != nil {
		c.Lines = map[string]string{blockLine: c.Lines[blockLine], "smtp": c.Lines["smtp"]}
		c.Keys = nil
	}
}

// line returns the position of a setting, or "" if it is unknown.
func (c *CaddyfileInfo) line(setting string) string {
	if c == nil {
		return ""
	}
	if at := c.Lines[setting]; at != "" || !strings.HasPrefix(setting, keyPrefix) {
		return at
	}
	for file, keys := range c.Keys {
		name, _, _ := strings.Cut(strings.TrimPrefix(setting, keyPrefix), ",")
		for i, line := range keys[name] {
			if i == 0 && setting == keyPrefix+name || i > 0 && setting == keyURLName(name, i-1) {
				return lineOf(file, line)
			}
		}
	}
	return ""
}

// recordKey records the position of d as that of a key.
func (c *CaddyfileInfo) recordKey(name string, d *caddyfile.Dispenser) {
	if c.Keys == nil {
		c.Keys = map[string]map[string][]int{}
	}
	file := d.File()
	if c.Keys[file] == nil {
		c.Keys[file] = map[string][]int{}
	}
	c.Keys[file][name] = []int{d.Line()}
}

// at returns the position of a setting with ": " after it, or "" if it is
// unknown.
func (c *CaddyfileInfo) at(setting string) string {
	if at := c.line(setting); at != "" {
		return at + ": "
	}
	return ""
}

// position returns the position of the block with ": " after it, or "" if it is
// unknown.
func (c *CaddyfileInfo) position() string { return c.at(blockLine) }

// locate returns err with the position of a setting or, if that has none, of
// the block. An error that has a position stays as it is. A nil c has no
// positions.
func (c *CaddyfileInfo) locate(setting string, err error) error {
	if err == nil || c == nil {
		return err
	}
	if _, ok := errors.AsType[*positionError](err); ok {
		return err
	}
	at := cmp.Or(c.line(setting), c.line(blockLine))
	if at == "" {
		return err
	}
	return &positionError{at, err}
}

// describe returns err with text inserted between its position and its message.
// If err has no position, it gets that of the block.
func (c *CaddyfileInfo) describe(text string, err error) error {
	if e, ok := errors.AsType[*positionError](err); ok {
		return &positionError{e.at, fmt.Errorf("%s%w", text, e.err)}
	}
	return c.locate(blockLine, fmt.Errorf("%s%w", text, err))
}

// positionError is an error in a line of a Caddyfile.
type positionError struct {
	at  string // file:line
	err error
}

func (e *positionError) Error() string { return e.at + ": " + e.err.Error() }

func (e *positionError) Unwrap() error { return e.err }

// logRejected logs an error that makes Caddy reject a configuration, and returns
// it. Caddy's own error begins with the names of all modules around this one,
// so this line has only the error itself.
func logRejected(log *zap.Logger, err error) error {
	if err != nil {
		log.Error(err.Error())
	}
	return err
}

// fileFingerprint computes CaddyfileInfo.Files. It ignores files that cannot be
// read, because the configuration may be for another machine.
type fileFingerprint struct{ hash hash.Hash }

// String returns the fingerprint, or "" if there are no files.
func (f *fileFingerprint) String() string {
	if f.hash == nil {
		return ""
	}
	return fmt.Sprintf("%x", f.hash.Sum(nil)[:8])
}

func (f *fileFingerprint) add(path string) {
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

// addPlaceholders adds the files of the placeholders {file.…} in text.
func (f *fileFingerprint) addPlaceholders(text string) {
	_ = placeholder.Each(text, func(name string) error {
		if path, ok := strings.CutPrefix(name, "file."); ok {
			f.add(path)
		}
		return nil
	})
}

// addImport adds a configuration file of Apprise and the files that it
// includes. It fetches nothing: files at web addresses are not part of the
// fingerprint.
func (f *fileFingerprint) addImport(location string) {
	f.addPlaceholders(location)
	location, err := placeholder.Resolve(location)
	if err != nil {
		return
	}
	read := func(ctx context.Context, location string) ([]byte, error) {
		if strings.Contains(location, "://") {
			return nil, nil // an empty file, so that Load goes on
		}
		f.add(location)
		if info, err := os.Stat(location); err != nil || !info.Mode().IsRegular() {
			return nil, err // reading a pipe would consume its content
		}
		return readImport(ctx, location)
	}
	entries, _, err := appriseconfig.Load(context.Background(), location, read)
	if err != nil {
		return // the error shows when the configuration loads
	}
	for _, e := range entries {
		f.addNamed(e.URL, e.Dir)
	}
}

// addURL adds the files of a URL: those of its placeholders, and those that it
// names. A relative path is relative to dir.
func (f *fileFingerprint) addURL(url, dir string) {
	if !strings.Contains(url, "{") && !notifier.MayNameFiles(url) {
		return
	}
	f.addPlaceholders(url)
	if url, err := placeholder.ResolveURL(url); err == nil {
		f.addNamed(url, cmp.Or(dir, "."))
	}
}

// addNamed adds the files that a URL without placeholders names.
func (f *fileFingerprint) addNamed(url, dir string) {
	for _, path := range notifier.FilePaths(url, notifier.Files{Dir: dir}) {
		f.add(path)
	}
}

// fingerprint returns the fingerprint of the files that the settings name, and
// those that the queue and the mail server of app name. app may be nil.
func (s *Settings) fingerprint(app *App) string {
	var f fileFingerprint
	if app != nil && app.Queue != nil {
		for _, text := range []string{app.Queue.Postgres, app.Queue.Path, app.Queue.Secret} {
			f.addPlaceholders(text)
		}
	}
	if app != nil && app.SMTP != nil {
		app.SMTP.addFiles(&f)
	}
	for _, url := range s.DefaultURLs {
		f.addURL(url, s.DefaultURLsDir)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		for _, u := range s.Keys[name].URLs {
			f.addURL(u.URL, u.Dir)
		}
		for _, location := range s.Keys[name].ImportApprise {
			f.addImport(location)
		}
		for _, variable := range slices.Sorted(maps.Keys(s.Keys[name].Variables)) {
			f.addPlaceholders(s.Keys[name].Variables[variable])
		}
		for _, secret := range slices.Concat(s.Keys[name].Tokens, s.Keys[name].Readers) {
			f.addPlaceholders(secret)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		src := s.Sources[name]
		for _, path := range []string{src.TitleFile, src.BodyFile} {
			if path != "" {
				f.add(path)
			}
		}
		f.addPlaceholders(src.Secret)
		f.addPlaceholders(src.Token)
	}
	if s.Configs != nil {
		f.addPlaceholders(s.Configs.Secret)
		for _, variable := range slices.Sorted(maps.Keys(s.Configs.Variables)) {
			f.addPlaceholders(s.Configs.Variables[variable])
		}
	}
	return f.String()
}
