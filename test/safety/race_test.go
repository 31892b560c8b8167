//go:build race

package safety

// raced reports whether the tests, and with them the gateway, are built with
// the race detector. The gateway is then several times slower and larger.
const raced = true
