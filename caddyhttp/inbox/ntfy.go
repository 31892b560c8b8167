package inbox

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// NtfyEvent is a line of a stream as ntfy's clients read it. See
// https://docs.ntfy.sh/subscribe/api/, which was read as of version 2.13.
type NtfyEvent struct {
	ID          string   `json:"id"`
	Time        int64    `json:"time"`              // in seconds since 1970
	Expires     int64    `json:"expires,omitempty"` // likewise
	Event       string   `json:"event"`
	Topic       string   `json:"topic"`
	Title       string   `json:"title,omitempty"`
	Message     string   `json:"message,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	ContentType string   `json:"content_type,omitempty"`
}

// ntfyIDLength is the length of the IDs of ntfy.
const ntfyIDLength = 12

// NewNtfyEvent returns an event that is not a message.
func NewNtfyEvent(event, topics string, now time.Time) NtfyEvent {
	return NtfyEvent{ID: rand.Text()[:ntfyIDLength], Time: now.Unix(), Event: event, Topic: topics}
}

// ntfyTypes are the priority and the tag for each type. ntfy shows the tag as an emoji.
var ntfyTypes = map[notifier.Type]struct {
	priority int
	tag      string
}{
	notifier.Failure: {5, "rotating_light"}, notifier.Warning: {4, "warning"}, notifier.Success: {3, "white_check_mark"}, notifier.Info: {3, ""},
}

// Ntfy returns m as a message of a topic of ntfy. It can be read until a time.
func (m *Message) Ntfy(topic string, until time.Time) NtfyEvent {
	t := ntfyTypes[m.Type]
	out := NtfyEvent{
		ID: m.Cursor.String(), Time: m.Time.Unix(), Expires: until.Unix(), Event: EventMessage, Topic: topic,
		Title: m.Title, Message: m.Text(), Priority: t.priority,
	}
	if t.tag != "" {
		out.Tags = []string{t.tag}
	}
	if m.Format == notifier.Markdown && !m.Foreign {
		out.Message, out.ContentType = m.withFiles(m.Body), "text/markdown"
	}
	out.Message = markup.TruncateBytes(out.Message, maxNtfy)
	if out.Message == "" { // ntfy's messages are never empty
		out.Message = "triggered"
	}
	return out
}

// maxNtfy is the maximum length of the text of a message, in bytes. ntfy's command reads
// lines of at most 64 KiB, in which a byte can take six.
const maxNtfy = 8 << 10

// maxTopics is the maximum number of topics of a request.
const maxTopics = 20

var ntfyTopic = lazyregexp.New(`^[-_A-Za-z0-9]{1,64}$`)

// ParseTopics returns the topics in an address, with commas between them. It reports
// whether they are well-formed.
func ParseTopics(text string) ([]string, bool) {
	topics := strings.Split(text, ",")
	return topics, len(topics) <= maxTopics && !slices.ContainsFunc(topics, func(t string) bool { return !ntfyTopic.MatchString(t) })
}

// NtfyFilter selects messages as ntfy's clients ask for them. An empty field selects all.
type NtfyFilter struct {
	ID, Message, Title string
	Priorities         []int
	Tags               []string
}

// ntfyPriorities are the names of priorities.
var ntfyPriorities = map[string]int{"min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5}

// ParseNtfyFilter returns the filter of a request. get returns the first parameter that
// has one of the names and is not empty. It reports whether the filter is well-formed.
func ParseNtfyFilter(get func(names ...string) string) (f NtfyFilter, ok bool) {
	f = NtfyFilter{ID: get("id"), Message: get("message", "m"), Title: get("title", "t")}
	for text := range strings.SplitSeq(get("priority", "prio", "p"), ",") {
		text = strings.ToLower(strings.TrimSpace(text))
		if text == "" {
			continue
		}
		n, named := ntfyPriorities[text]
		if !named {
			var err error
			if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 5 {
				return f, false
			}
		}
		f.Priorities = append(f.Priorities, n)
	}
	for tag := range strings.SplitSeq(get("tags", "tag", "ta"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.Tags = append(f.Tags, tag)
		}
	}
	return f, true
}

// Selects reports whether the client wants a message.
func (f *NtfyFilter) Selects(e *NtfyEvent) bool {
	switch {
	case f.ID != "" && f.ID != e.ID,
		f.Message != "" && f.Message != e.Message,
		f.Title != "" && f.Title != e.Title,
		len(f.Priorities) > 0 && !slices.Contains(f.Priorities, e.Priority):
		return false
	}
	return !slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(e.Tags, tag) })
}
