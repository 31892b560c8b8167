//go:build !race

package racetest

// Enabled reports whether the tests are built with the race detector.
const Enabled = false
