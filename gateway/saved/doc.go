// Package saved has the keys that clients save. [Keys] has the saved keys of a site. A key is read
// from the store at its first use, and again when it changes. Sites of one [Space] have the same
// keys.
package saved
