// Package history keeps the outcomes of the latest messages and refusals.
package history
