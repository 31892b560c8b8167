// Package saved has the keys that clients save. [Keys] are those of a site: they are read
// from the store at their first use, and again when they change. Sites of one [Space] have
// the same keys.
package saved
