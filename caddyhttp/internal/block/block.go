// Package block reads blocks of subdirectives from a Caddyfile, and records where each
// setting stands, so that an error can say it after the adapter has gone. Every error
// names the line, what is wrong, and what to write instead.
package block

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/similar"
)

// Options are the subdirectives of a block, by name.
type Options map[string]Option

// Option is a subdirective. Exactly one of Line, At and Block is set.
type Option struct {
	Usage    string // for errors, such as "timeout <duration>"
	Min, Max int    // number of arguments
	Repeat   bool   // it may occur several times

	// Line reads the arguments of a subdirective without a block. Its errors get
	// the name of the subdirective and the position in the file.
	Line func(args []string) error

	// At is Line with the position in the file.
	At func(d *caddyfile.Dispenser, args []string) error

	// Block reads a subdirective that may have a block. Its errors have their
	// position.
	Block func(d *caddyfile.Dispenser, args []string) error
}

// Read reads the block of the directive or subdirective called name, which
// opens after the current token of d. It returns an error if there is no block,
// or an empty one.
//
// Errors do not show tokens that could be a URL or a secret in the wrong place.
func Read(d *caddyfile.Dispenser, name string, known Options) error {
	start := *d
	n, err := read(d, name, known)
	if err == nil && n == 0 {
		return start.WrapErr(&EmptyError{name, known.names()})
	}
	return err
}

// EmptyError is returned for a directive without a block, or with an empty one.
type EmptyError struct{ name, known string }

func (e *EmptyError) Error() string {
	return e.name + " needs a block with at least one of " + e.known
}

// ReadOptional is like Read for a directive that needs no block.
func ReadOptional(d *caddyfile.Dispenser, name string, known Options) error {
	_, err := read(d, name, known)
	return err
}

// read returns how many different subdirectives the block has.
func read(d *caddyfile.Dispenser, name string, known Options) (int, error) {
	seen := map[string]bool{}
	start := *d
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		sub := d.Val()
		o, ok := known[sub]
		switch {
		case !ok && isDirective(sub):
			return 0, d.Errf("unknown subdirective %q in %s; it is a directive of Caddy, so a } for the %s in line %d may be missing",
				sub, name, name, start.Line())
		case !ok:
			return 0, d.Errf("unknown subdirective%s in %s; %s", Quote(sub), name, known.instead(sub, name))
		case seen[sub] && !o.Repeat:
			return 0, d.Errf("%s occurs twice in %s; remove one", sub, name)
		}
		seen[sub] = true
		args := d.RemainingArgs()
		if len(args) < o.Min || len(args) > o.Max {
			return 0, d.Errf("wrong number of arguments; expected %s", o.Usage)
		}
		if err := o.read(d, args, sub); err != nil {
			return 0, err
		}
	}
	return len(seen), nil
}

// directives are the names of Caddy's directives and global options that a
// handler module does not have.
var directives = strings.Fields(`
	abort acme_server admin auto_https basic_auth bind copy_response debug
	default_bind email error events file_server forward_auth fs grace_period
	handle handle_errors handle_path handle_response header http_port https_port
	import local_certs log log_append log_name log_skip logging method order
	pki php_fastcgi redir request_header respond root route servers skip_log
	storage tls try_files uri`)

// instead returns what to write instead of an unknown subdirective of the block name.
func (o Options) instead(sub, name string) string {
	if _, ok := o["url"]; ok && strings.Contains(sub, "://") {
		return "write url before a notification URL"
	}
	if similar := similar.Names(sub, slices.Sorted(maps.Keys(o))); len(similar) > 0 && Quote(sub) != "" {
		return "you may mean " + strings.Join(similar, " or ")
	}
	return "is a } missing above? " + name + " has the subdirectives " + o.names()
}

// isDirective reports whether a token is the name of a directive or global
// option. Caddy has no function for that.
func isDirective(token string) bool {
	if !shortName.MatchString(token) {
		return false
	}
	_, err := caddy.GetModule("http.handlers." + token)
	return err == nil || slices.Contains(directives, token)
}

func (o Options) names() string { return strings.Join(slices.Sorted(maps.Keys(o)), ", ") }

func (o Option) read(d *caddyfile.Dispenser, args []string, name string) error {
	if o.Block != nil {
		return o.Block(d, args)
	}
	if next := *d; next.Next() && next.Val() == "{" {
		return d.Errf("%s takes no block; expected %s", name, o.Usage)
	}
	var err error
	if o.At != nil {
		err = o.At(d, args)
	} else {
		err = o.Line(args)
	}
	if err != nil {
		return d.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// shortName matches what looks like a misspelt name rather than a URL or a secret.
var shortName = lazyregexp.New(`^[a-z0-9_]{1,16}$`)

// Quote returns a token in quotes after a space or, if it may be a secret,
// nothing.
func Quote(token string) string {
	if !shortName.MatchString(token) {
		return ""
	}
	return " " + strconv.Quote(token)
}
