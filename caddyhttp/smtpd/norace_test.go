//go:build !race

package smtpd

// raceEnabled reports whether the race detector is on.
const raceEnabled = false
