package device

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// numbered is the set of tags that destinations of a key have with a number, in lower case. A
// device cannot give itself one of these: without a number it would be number 0, the first of the
// chain, and the others would get nothing.
type numbered map[string]bool

// add adds the tags that have a number.
func (n numbered) add(tags []string) {
	for _, tag := range tags {
		if _, name := notifier.SplitTag(tag); name != tag {
			n[strings.ToLower(name)] = true
		}
	}
}

// numbered returns urls with the numbered tags that devices have by invitation.
func (l *List) numbered(urls numbered) numbered {
	out := numbered{}
	for name := range urls {
		out[name] = true
	}
	for i := range l.All {
		out.add(l.All[i].Granted)
	}
	return out
}

// has reports whether tag has a number, or the key has it with one.
func (n numbered) has(tag string) bool {
	_, name := notifier.SplitTag(tag)
	return name != tag || n[strings.ToLower(tag)]
}

// checkOwn returns an error if d gives itself a tag that its key has with a number.
func (l *List) checkOwn(d *Device, urls numbered) error {
	numbered := l.numbered(urls)
	numbered.add(d.Granted)
	if i := slices.IndexFunc(d.Own, numbered.has); i >= 0 {
		return message.Errorf(message.Invalid,
			"tags: the key has %s with a number, which says who is told first; remove it, or ask for an invitation with it", d.Own[i])
	}
	return nil
}

// tagsOf returns the tags of d that count for messages. Own tags that the key has with a number do
// not count; d may have chosen them before the key had them. urls has the tags of the key's URLs.
func (l *List) tagsOf(d *Device, urls numbered) []string {
	numbered := l.numbered(urls)
	return slices.DeleteFunc(d.Tags(), func(tag string) bool {
		return numbered.has(tag) && !slices.Contains(d.Granted, tag)
	})
}
