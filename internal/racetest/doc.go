// Package racetest decides how much tests do. The race detector makes code that only
// computes about ten times slower and finds nothing there, and whoever works on one thing
// wants to know soon whether the rest still works. So a test that computes for long uses all
// its cases only in .ci/run, which sets CI, and there without the race detector.
package racetest

import (
	"os"
	"testing"
)

// All reports whether tests use all their cases.
func All() bool { return !Enabled && os.Getenv("CI") != "" }

// Amount returns most if [All] is true, and else few.
func Amount(most, few int) int {
	if All() {
		return most
	}
	return few
}

// Part returns all cases if [All] is true, or every nth.
func Part[T any](cases []T, n int) []T {
	if All() {
		return cases
	}
	var part []T
	for i := 0; i < len(cases); i += n {
		part = append(part, cases[i])
	}
	return part
}

// SkipIfSlow skips a test if the race detector is on. It is for tests that compute for long or
// start many gateways, if other tests cover all that happens at once in them.
func SkipIfSlow(t testing.TB) {
	if Enabled {
		t.Helper()
		t.Skip("it takes long with the race detector, which finds nothing there")
	}
}

// LeaveToCI skips a test that floods, kills or waits for real time, unless CI is set: it needs a
// machine for itself. .ci/run runs it.
func LeaveToCI(t testing.TB) {
	if os.Getenv("CI") == "" {
		t.Helper()
		t.Skip("it floods, kills or waits: .ci/run runs it, or go test with CI=1")
	}
}
