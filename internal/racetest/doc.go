// Package racetest tells tests whether the race detector is on. It makes code that only
// computes about ten times slower and finds nothing there. Such tests use a part of their
// cases with it, and .ci/run runs all cases without it.
package racetest

import "testing"

// SkipIfSlow skips a test that only computes if the race detector is on.
func SkipIfSlow(t testing.TB) {
	if Enabled {
		t.Helper()
		t.Skip("it only computes, and takes long with the race detector")
	}
}

// Part returns all cases, or with the race detector every nth.
func Part[T any](cases []T, n int) []T {
	if !Enabled {
		return cases
	}
	var part []T
	for i := 0; i < len(cases); i += n {
		part = append(part, cases[i])
	}
	return part
}
