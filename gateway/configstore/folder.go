package configstore

import (
	"encoding/base32"
	"path"
	"strings"
)

// The names of the objects. The folders of named spaces are not below the folder of the default
// space, so that no storage lists their keys as keys of the default space.
const (
	defaultFolder = "notify/configs"
	spacesFolder  = "notify/spaces"
	lockName      = "notify_configs"
)

// folder is the folder of a space in the storage. It has an object for each key and, for each key
// with a token, an empty second one: its name shows that the key has a token, so that a list of the
// names suffices and the objects need not be read.
type folder string

// The ends of the names of objects.
const (
	objectSuffix = ".json"  // with a configuration
	markSuffix   = ".token" // the mark of a key with a token
	movedSuffix  = ".moved" // with the present names of keys that were moved from this name
)

// encoding makes names of lower-case letters and digits. They stay unique in
// storages that ignore case, and have no character that a storage replaces.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// file returns the name of an object that belongs to no key.
func (f folder) file(name string) string { return path.Join(string(f), name) }

// objectName returns the name of the object of a key. A key of 128 characters gives a file name of
// 210 characters.
func (f folder) objectName(key string) string {
	return f.file(encoding.EncodeToString([]byte(key)) + objectSuffix)
}

// markName returns the name of the mark of a key.
func (f folder) markName(key string) string {
	return strings.TrimSuffix(f.objectName(key), objectSuffix) + markSuffix
}

// movedName returns the name of the object that leads from a former name to the keys that had it.
func (f folder) movedName(key string) string {
	return strings.TrimSuffix(f.objectName(key), objectSuffix) + movedSuffix
}

// keyOf is the inverse of objectName. It reports whether the object is a configuration of this
// space, because a storage may list names without their folder, or from folders whose names begin
// alike.
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

// markedKey returns the key in the name of an object with a suffix, and reports whether the object
// belongs to this space.
func (f folder) markedKey(name, suffix string) (string, bool) {
	text, ok := strings.CutSuffix(path.Base(name), suffix)
	if !ok {
		return "", false
	}
	return f.keyOf(path.Join(path.Dir(name), text+objectSuffix))
}
