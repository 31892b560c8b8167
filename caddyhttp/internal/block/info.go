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

// Info has the positions of a block in a Caddyfile, for errors. They are not part of the
// configuration: see [Remember]. A nil Info has none.
type Info struct {
	// The positions of the settings, file and line, by the name of the setting. Begin is
	// the line where the block begins.
	lines map[string]string

	// The lines of keys and their URLs, by file and key: the line where the block of the
	// key begins, and the line of each of its URLs. There can be many.
	keys map[string]map[string][]int

	// Where a snippet or a file with configs is imported, such as
	// "Caddyfile:9 (import saved)".
	Imports string

	of fingerprint // of the block in JSON
}

// Begin is the name in Info of the line where a block begins.
const Begin = "notify"

// KeyPrefix begins the name of a key, and of a setting of a key, in errors and in
// Info.
const KeyPrefix = "key "

// KeyURLName returns the name of URL i of a key, counted from 0, in errors and in
// Info.
func KeyURLName(key string, i int) string { return fmt.Sprintf("key %s, URL %d", key, i+1) }

// Record records the position of d as the position of a setting.
func (c *Info) Record(setting string, d *caddyfile.Dispenser) {
	if c.lines == nil {
		c.lines = map[string]string{}
	}
	c.lines[setting] = lineOf(d.File(), d.Line())
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

// Trimmed returns c without the positions that are needed only until the settings are
// loaded. There can be one for each URL.
func (c *Info) Trimmed() *Info {
	if c == nil {
		return nil
	}
	return &Info{lines: map[string]string{Begin: c.lines[Begin], "smtp": c.lines["smtp"]}, of: c.of}
}

// Line returns the position of a setting, or "" if it is unknown.
func (c *Info) Line(setting string) string {
	if c == nil {
		return ""
	}
	if at := c.lines[setting]; at != "" || !strings.HasPrefix(setting, KeyPrefix) {
		return at
	}
	for file, keys := range c.keys {
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
	if c.keys == nil {
		c.keys = map[string]map[string][]int{}
	}
	file := d.File()
	if c.keys[file] == nil {
		c.keys[file] = map[string][]int{}
	}
	c.keys[file][name] = []int{d.Line()}
}

// RecordURL records the position of d as the position of URL i of a key, counted from 0, whose
// block begins in file.
func (c *Info) RecordURL(name, file string, i int, d *caddyfile.Dispenser) {
	if d.File() != file { // an import within the block
		c.Record(KeyURLName(name, i), d)
	}
	c.keys[file][name] = append(c.keys[file][name], d.Line())
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
