package appriseconfig

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// group is a name for the destinations with one of the tags.
type group struct {
	name string
	tags []string
}

// splitTags splits a list of tags.
func splitTags(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("[];, \t\r\n\v\f", r) })
}

var tagPattern = lazyregexp.New(`^(?:(\d+):)?([^:]*)(:\d+)?$`)

// entryTags returns the tags of an entry, and reports whether they are valid. Each
// may have a number before it, as in 2:ops.
func (f *file) entryTags(line int, tags []string) (out []string, ok bool) {
	for _, tag := range tags {
		m := tagPattern.FindStringSubmatch(tag)
		switch {
		case m != nil && m[3] != "":
			f.fail(line, "a tag cannot have a number of retries; write ?retry=3 in the URL, or retry: 3 below it")
			return nil, false
		case m == nil || !notifier.ValidTag(m[2]):
			f.fail(line, "a tag must begin with a letter or digit and have only letters, digits, _ and -")
			return nil, false
		}
		out = addTag(out, tag)
	}
	return out, true
}

func addTag(tags []string, tag string) []string {
	if hasTag(tags, tag) {
		return tags
	}
	return append(tags, tag)
}

func hasTag(tags []string, tag string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, tag) })
}

// addGroups adds groups that all have the same tags.
func (f *file) addGroups(line int, names, tags []string) {
	if len(names) == 0 {
		f.fail(line, "the name of a group is missing before its tags")
		return
	}
	bare := slices.Clone(tags)
	for _, name := range names { // a group can have a number, but not those that it contains
		_, name = notifier.SplitTag(name)
		bare = append(bare, name)
	}
	for _, name := range bare {
		if !notifier.ValidTag(name) {
			f.fail(line, "the name of a group and its tags must begin with a letter or digit and have only letters, digits, _ and -")
			return
		}
	}
	if len(tags) == 0 {
		f.warn(line, "the group has no tags")
	}
	for _, name := range names {
		f.groups = append(f.groups, group{name, tags})
	}
}

// applyGroups adds to the tags of each entry the groups that contain them, and the
// groups that contain those.
func (f *file) applyGroups() {
	within := map[string][]string{} // tag to the groups that contain it
	for _, g := range f.groups {
		for _, tag := range g.tags {
			tag = strings.ToLower(tag)
			within[tag] = addTag(within[tag], g.name)
		}
	}
	for i := range f.entries {
		e := &f.entries[i]
		for k := 0; k < len(e.Tags); k++ { // the loop appends to the list
			for _, name := range within[strings.ToLower(e.Tags[k])] {
				e.Tags = addTag(e.Tags, name)
			}
		}
	}
}
