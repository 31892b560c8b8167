package site

import "strings"

// IsDevice reports whether what is shown of a destination is that of a device.
func IsDevice(shown string) bool { return strings.HasPrefix(shown, Scheme) }
