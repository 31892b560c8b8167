package configstore

import (
	"encoding/base32"
	"path"
	"strings"
)

// The names of the objects. The folders of named spaces are not below that of the
// default space, so that no storage lists their keys as keys of the default space.
const (
	defaultFolder = "notify/configs"
	spacesFolder  = "notify/spaces"
	lockName      = "notify_configs"
)

// folder is the folder of a space in the storage. It has an object for each key, and for
// each key with a token a second one, which is empty: its name tells those who list the keys
// that a key has a token, so that they need not read all of them.
type folder string

// The ends of the names of objects.
const (
	objectSuffix = ".json"  // with a configuration
	markSuffix   = ".token" // the mark of a key with a token
	movedSuffix  = ".moved" // with the names of keys that were moved from this name
)

// encoding makes names of lower-case letters and digits. They stay unique in
// storages that ignore case, and have no character that a storage replaces.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// file returns the name of an object that belongs to no key.
func (f folder) file(name string) string { return path.Join(string(f), name) }

// objectName returns the name of the object of a key. A key of 128 characters
// makes a file name of 210.
func (f folder) objectName(key string) string {
	return f.file(encoding.EncodeToString([]byte(key)) + objectSuffix)
}

// markName returns the name of the mark of a key.
func (f folder) markName(key string) string {
	return strings.TrimSuffix(f.objectName(key), objectSuffix) + markSuffix
}

// movedName returns the name of the object that tells where the keys are that had a name.
func (f folder) movedName(key string) string {
	return strings.TrimSuffix(f.objectName(key), objectSuffix) + movedSuffix
}

// keyOf is the inverse of objectName. It reports whether the object is a
// configuration of this space. A storage may list names without their folder, or
// those of folders whose names begin alike.
func (f folder) keyOf(name string) (string, bool) {
	if dir := path.Dir(name); dir != "." && path.Base(dir) != path.Base(string(f)) {
		return "", false
	}
	text, ok := strings.CutSuffix(path.Base(name), objectSuffix)
	if !ok {
		return "", false
	}
	key, err := encoding.DecodeString(text)
	return string(key), err == nil
}

// markedKey returns the key of whose name an object with a suffix is, and reports whether the
// object is one of this space.
func (f folder) markedKey(name, suffix string) (string, bool) {
	text, ok := strings.CutSuffix(path.Base(name), suffix)
	if !ok {
		return "", false
	}
	return f.keyOf(path.Join(path.Dir(name), text+objectSuffix))
}
