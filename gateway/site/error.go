package site

import (
	"fmt"
)

// PrefixError returns err with the name of the setting that it is about.
func PrefixError(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }
