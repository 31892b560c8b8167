package block

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"
)

// Info has what the Caddyfile adapter records about a block. Leave it
// out of a JSON configuration.
type Info struct {
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

// Number returns the number of the block, or 0 if it is unknown.
func (c *Info) Number() int {
	if c == nil {
		return 0
	}
	return c.Block
}

// Begin is the name in Info.Lines of the line where a block begins.
const Begin = "notify"

// KeyPrefix begins the name of a key, and of a setting of a key, in errors and
// in Info.Lines.
const KeyPrefix = "key "

// KeyURLName returns the name of URL i of a key, counted from 0, in errors and
// in Info.Lines.
func KeyURLName(key string, i int) string { return fmt.Sprintf("key %s, URL %d", key, i+1) }

// Record records the position of d as the position of a setting.
func (c *Info) Record(setting string, d *caddyfile.Dispenser) {
	if c.Lines == nil {
		c.Lines = map[string]string{}
	}
	c.Lines[setting] = lineOf(d.File(), d.Line())
}

// ImportsOf returns where the current token of d was imported, or "" if it was not.
// Only the text of an error has it.
func ImportsOf(d *caddyfile.Dispenser) string {
	_, chain, found := strings.Cut(d.WrapErr(errors.New("")).Error(), " import chain ['")
	if !found {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(chain, "']"), "','", ", ")
}

func lineOf(file string, line int) string { return file + ":" + strconv.Itoa(line) }

// Trim drops the positions that are needed only until the settings are loaded.
// There can be one for each URL.
func (c *Info) Trim() {
	if c != nil {
		c.Lines = map[string]string{Begin: c.Lines[Begin], "smtp": c.Lines["smtp"]}
		c.Keys = nil
	}
}

// Line returns the position of a setting, or "" if it is unknown.
func (c *Info) Line(setting string) string {
	if c == nil {
		return ""
	}
	if at := c.Lines[setting]; at != "" || !strings.HasPrefix(setting, KeyPrefix) {
		return at
	}
	for file, keys := range c.Keys {
		name, _, _ := strings.Cut(strings.TrimPrefix(setting, KeyPrefix), ",")
		for i, line := range keys[name] {
			if i == 0 && setting == KeyPrefix+name || i > 0 && setting == KeyURLName(name, i-1) {
				return lineOf(file, line)
			}
		}
	}
	return ""
}

// RecordKey records the position of d as the position of a key.
func (c *Info) RecordKey(name string, d *caddyfile.Dispenser) {
	if c.Keys == nil {
		c.Keys = map[string]map[string][]int{}
	}
	file := d.File()
	if c.Keys[file] == nil {
		c.Keys[file] = map[string][]int{}
	}
	c.Keys[file][name] = []int{d.Line()}
}

// At returns the position of a setting with ": " after it, or "" if it is
// unknown.
func (c *Info) At(setting string) string {
	if at := c.Line(setting); at != "" {
		return at + ": "
	}
	return ""
}

// Position returns the position of the block with ": " after it, or "" if it is
// unknown.
func (c *Info) Position() string { return c.At(Begin) }

// Locate returns err with the position of a setting or, if that has none, of
// the block. An error that has a position stays as it is. A nil c has no
// positions.
func (c *Info) Locate(setting string, err error) error {
	if err == nil || c == nil {
		return err
	}
	if _, ok := errors.AsType[*positionError](err); ok {
		return err
	}
	at := cmp.Or(c.Line(setting), c.Line(Begin))
	if at == "" {
		return err
	}
	return &positionError{at, err}
}

// Describe returns err with text inserted between its position and its message.
// If err has no position, it gets the position of the block.
func (c *Info) Describe(text string, err error) error {
	if e, ok := errors.AsType[*positionError](err); ok {
		return &positionError{e.at, fmt.Errorf("%s%w", text, e.err)}
	}
	return c.Locate(Begin, fmt.Errorf("%s%w", text, err))
}

// positionError is an error in a line of a Caddyfile.
type positionError struct {
	at  string // file:line
	err error
}

func (e *positionError) Error() string { return e.at + ": " + e.err.Error() }

func (e *positionError) Unwrap() error { return e.err }

// LogRejected logs an error that makes Caddy reject a configuration, and returns
// it. Caddy's own error begins with the names of all modules around this one,
// so this line has only the error itself.
func LogRejected(log *zap.Logger, err error) error {
	if err != nil {
		log.Error(err.Error())
	}
	return err
}
