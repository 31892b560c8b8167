// Package history remembers the outcomes of the last messages and the last
// refusals.
package history
