// Package saved keeps the keys that clients save.
package saved
