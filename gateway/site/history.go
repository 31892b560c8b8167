package site

// KeyID identifies a key: several sites may have keys of the same name.
type KeyID struct{ Site, Key string }
