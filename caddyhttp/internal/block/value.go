package block

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
)

// The functions below return a function for Option.Line that reads one kind of
// value.

// OnOff reads on or off.
func OnOff(to **bool) func([]string) error {
	return func(args []string) error {
		on := args[0] == "on"
		if !on && args[0] != "off" {
			return errors.New("it must be on or off")
		}
		*to = &on
		return nil
	}
}

// On reads on or off to what is false by default.
func On(to *bool) func([]string) error {
	return func(args []string) error {
		var on *bool
		err := OnOff(&on)(args)
		*to = on != nil && *on
		return err
	}
}

// Text reads a text, and checks it.
func Text(to *string, check func(string) error) func([]string) error {
	return func(args []string) error {
		*to = args[0]
		return check(args[0])
	}
}

// List appends the texts of each line, and checks them.
func List(to *[]string, check func([]string) error) func([]string) error {
	return func(args []string) error {
		*to = append(*to, args...)
		return check(args)
	}
}

// Size reads a number of bytes above 0, such as 8MiB.
func Size(to *int64) func([]string) error {
	return func(args []string) error {
		n, err := humanize.ParseBytes(args[0])
		if err != nil || n == 0 || n > math.MaxInt64 {
			return errors.New("it must be a size above 0, such as 8MiB or 500KB")
		}
		*to = int64(n)
		return nil
	}
}

// Duration reads a duration above 0, such as 30s.
func Duration(to *caddy.Duration) func([]string) error {
	return func(args []string) error {
		t, err := caddy.ParseDuration(args[0])
		if err != nil || t <= 0 {
			return errors.New("it must be a duration above 0, such as 30s or 2m")
		}
		*to = caddy.Duration(t)
		return nil
	}
}

// Number reads a whole number between min and max.
func Number(to *int, min, max int) func([]string) error {
	return func(args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < min || n > max {
			return fmt.Errorf("it must be a whole number from %d to %d", min, max)
		}
		*to = n
		return nil
	}
}

// AbsPath makes the path of a file absolute. A relative path is relative to
// the Caddyfile that names it. Addresses, and locations that begin with a
// placeholder, are returned as they are.
func AbsPath(location, caddyfile string) (string, error) {
	switch {
	case location == "":
		return "", errors.New("the location is empty; write the path or address of a file")
	case strings.Contains(location, "://"), strings.HasPrefix(location, "{"), filepath.IsAbs(location):
		return location, placeholder.Check(location)
	}
	path, err := filepath.Abs(filepath.Join(filepath.Dir(caddyfile), location))
	if err != nil {
		return "", fmt.Errorf("making the path absolute: %w", err)
	}
	return path, placeholder.Check(location)
}

// ErrEmptyText is returned for a text that must not be empty.
var ErrEmptyText = errors.New("it must not be empty")
