package api

import "strings"

// RootOf returns the address of the folder that has the routes, relative to a
// request for path.
func RootOf(path string) string {
	if depth := strings.Count(path, "/") - 1; depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}
