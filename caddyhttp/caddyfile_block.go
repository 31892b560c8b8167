package caddyhttp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// options are the subdirectives of a block, by name.
type options map[string]option

// option is a subdirective. Exactly one of line, at and block is set.
type option struct {
	usage    string // for errors
	min, max int    // number of arguments
	repeat   bool   // it may occur several times

	line  func(args []string) error
	at    func(d *caddyfile.Dispenser, args []string) error // line with the position in the file
	block func(d *caddyfile.Dispenser, args []string) error
}

// readBlock reads the block of the directive or subdirective called name, which
// opens after the current token. Only notify, queue, configs and smtp may do
// without a block or have an empty one.
//
// Errors do not show tokens that could be a URL or a secret in the wrong place.
func readBlock(d *caddyfile.Dispenser, name string, known options) error {
	seen := map[string]bool{}
	start := *d
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		sub := d.Val()
		o, ok := known[sub]
		switch {
		case !ok && isDirective(sub):
			return d.Errf("unknown subdirective %q in %s; it is a directive of Caddy, so a } for the %s in line %d may be missing", sub, name, name, start.Line())
		case !ok:
			return d.Errf("unknown subdirective%s in %s; is a } missing above? %s has the subdirectives %s", quoteName(sub), name, name, known.names())
		case seen[sub] && !o.repeat:
			return d.Errf("%s occurs twice in %s; remove one", sub, name)
		}
		seen[sub] = true
		args := d.RemainingArgs()
		if len(args) < o.min || len(args) > o.max {
			return d.Errf("wrong number of arguments; expected %s", o.usage)
		}
		if err := o.read(d, args, sub); err != nil {
			return err
		}
	}
	if len(seen) == 0 && name != "notify" && name != "queue" && name != "configs" && name != "smtp" {
		return start.Errf("%s needs a block with at least one of %s", name, known.names())
	}
	return nil
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

// isDirective reports whether a token is the name of a directive or global
// option. Caddy has no function for that.
func isDirective(token string) bool {
	if !shortName.MatchString(token) {
		return false
	}
	_, err := caddy.GetModule("http.handlers." + token)
	return err == nil || slices.Contains(directives, token)
}

func (o options) names() string { return strings.Join(slices.Sorted(maps.Keys(o)), ", ") }

func (o option) read(d *caddyfile.Dispenser, args []string, name string) error {
	if o.block != nil {
		return o.block(d, args)
	}
	if next := *d; next.Next() && next.Val() == "{" {
		return d.Errf("%s takes no block; expected %s", name, o.usage)
	}
	var err error
	if o.at != nil {
		err = o.at(d, args)
	} else {
		err = o.line(args)
	}
	if err != nil {
		return d.WrapErr(prefixError(name, err))
	}
	return nil
}

func prefixError(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

// shortName matches what looks like a misspelt name rather than a URL or a secret.
var shortName = lazyregexp.New(`^[a-z0-9_]{1,16}$`)

// quoteName returns a token in quotes after a space or, if it may be a secret,
// nothing.
func quoteName(token string) string {
	if !shortName.MatchString(token) {
		return ""
	}
	return " " + strconv.Quote(token)
}

// The functions below return a function for option.line that reads one kind of
// value.

//go:noinline // each caller would get a copy of the closure
func onOff(to **bool) func([]string) error {
	return func(args []string) error {
		on := args[0] == "on"
		if !on && args[0] != "off" {
			return errors.New("it must be on or off")
		}
		*to = &on
		return nil
	}
}

//go:noinline // each caller would get a copy of the closure
func byteSize(to *int64) func([]string) error {
	return func(args []string) error {
		n, err := humanize.ParseBytes(args[0])
		if err != nil || n == 0 || n > math.MaxInt64 {
			return errors.New("it must be a size above 0, such as 8MiB or 500KB")
		}
		*to = int64(n)
		return nil
	}
}

//go:noinline // each caller would get a copy of the closure
func positiveDuration(to *caddy.Duration) func([]string) error {
	return func(args []string) error {
		t, err := caddy.ParseDuration(args[0])
		if err != nil || t <= 0 {
			return errors.New("it must be a duration above 0, such as 30s or 2m")
		}
		*to = caddy.Duration(t)
		return nil
	}
}

// number reads a whole number between min and max.
//
//go:noinline // each caller would get a copy of the closure
func number(to *int, min, max int) func([]string) error {
	return func(args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < min || n > max {
			return fmt.Errorf("it must be a whole number from %d to %d", min, max)
		}
		*to = n
		return nil
	}
}
