package block

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
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
