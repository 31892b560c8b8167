// Package left has no code. Its path is a line in what "go test ./..." prints, because the
// go command prints nothing else of a package whose tests pass: without CI in the
// environment, tests that flood, kill or wait for real time are skipped (see LeaveToCI of
// package racetest), and .ci/run runs them.
package left
