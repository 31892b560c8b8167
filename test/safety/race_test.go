//go:build race

package safety

// raceEnabled reports whether the tests and the gateway are built with the race
// detector, which makes the gateway several times slower and larger.
const raceEnabled = true
