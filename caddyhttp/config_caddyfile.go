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

	// The positions of keys and their URLs, by file. A key has its name, a
	// colon, the line where its block begins and, for each URL, a plus sign and
	// the number of lines from there to the URL. Example:
	// `{"Caddyfile": "ops:5+1+2 dev:9+1"}`.
	Keys map[string]string `json:"keys,omitempty"`

	// A fingerprint of the files that `{file.…}`, `import_apprise` and URLs in
	// the block name. It covers the modification time, the size and the target
	// of symbolic links, but not the content. With it, `caddy reload` loads a
	// configuration again when only such a file has changed.
	Files string `json:"files,omitempty"`
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
		for item := range strings.FieldsSeq(keys) {
			if line := findKeyLine(item, setting); line > 0 {
				return lineOf(file, line)
			}
		}
	}
	return ""
}

// findKeyLine returns the line of a setting of a key if item, a part of
// CaddyfileInfo.Keys, has it, or 0.
func findKeyLine(item, setting string) int {
	name, lines, _ := strings.Cut(item, ":")
	if rest, ok := strings.CutPrefix(setting, keyPrefix+name); !ok || rest != "" && rest[0] != ',' {
		return 0
	}
	first, below, _ := strings.Cut(lines, "+")
	line, err := strconv.Atoi(first)
	switch {
	case err != nil:
		return 0
	case setting == keyPrefix+name:
		return line
	}
	for i, text := range strings.Split(below, "+") {
		if n, err := strconv.Atoi(text); err == nil && setting == keyURLName(name, i) {
			return line + n
		}
	}
	return 0
}

// keyLines collects CaddyfileInfo.Keys. A Caddyfile can have tens of thousands
// of URLs, and Caddy reads and writes the configuration several times when it
// loads: positions in one string cost much less than as many strings.
type keyLines map[string][]byte

// add adds a key that begins at a position.
func (l keyLines) add(name, file string, line int) {
	out := l[file]
	if len(out) > 0 {
		out = append(out, ' ')
	}
	out = append(append(out, name...), ':')
	l[file] = strconv.AppendInt(out, int64(line), 10)
}

// addURL adds a URL to the key that was added last, which begins in file.
func (l keyLines) addURL(file string, below int) {
	l[file] = strconv.AppendInt(append(l[file], '+'), int64(below), 10)
}

// strings returns the value of CaddyfileInfo.Keys.
func (l keyLines) strings() map[string]string {
	out := make(map[string]string, len(l))
	for file, text := range l {
		out[file] = string(text)
	}
	return out
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
	_ = eachPlaceholder(text, func(name string) error {
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
	location, err := resolvePlaceholders(location)
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
	if url, err := resolveURL(url); err == nil {
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
	}
	return f.String()
}
