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
		if m := tagPattern.FindStringSubmatch(tag); m != nil && m[3] != "" {
			f.fail(line, "a tag cannot have a number of retries; write ?retry=3 in the URL, or retry: 3 below it")
			return nil, false
		}
		out = addTag(out, f.cleanTag(line, tag))
	}
	return out, true
}

// cleanTag returns a tag or the name of a group in a form that requests can use. Apprise takes any
// text. An invalid tag is replaced rather than dropped, because an entry without tags would get the
// messages for entries without tags.
func (f *file) cleanTag(line int, tag string) string {
	if m := tagPattern.FindStringSubmatch(tag); m != nil && notifier.ValidTag(m[2]) {
		return tag
	}
	f.warn(line, "a tag begins with a letter or digit and has only letters, digits, _ and -; other characters are replaced with _")
	tag = strings.Map(func(r rune) rune {
		if r == '-' || notifier.ValidTag(string(r)) {
			return r
		}
		return '_'
	}, tag)
	if !notifier.ValidTag(tag) {
		tag = "tag" + tag
	}
	return tag
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
	if len(tags) == 0 {
		f.warn(line, "the group has no tags")
	}
	for i, tag := range tags {
		tags[i] = f.cleanTag(line, tag)
	}
	for _, name := range names {
		f.groups = append(f.groups, group{f.cleanTag(line, name), tags})
	}
}

// applyGroups adds to the tags of each entry the groups that contain them, and the
// groups that contain those.
func (f *file) applyGroups() {
	within := map[string][]string{} // for each tag, the groups that contain it
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
