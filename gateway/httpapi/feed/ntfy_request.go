package feed

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// maxTopics is the maximum number of topics of a request.
const maxTopics = 20

var ntfyTopic = lazyregexp.New(`^[-_A-Za-z0-9]{1,64}$`)

// ntfyID matches the IDs of ntfy's messages.
var ntfyID = lazyregexp.New(`^[-_A-Za-z0-9]{12}$`)

// errNtfyTopics and errNtfyPriority are returned for invalid parameters.
var (
	errNtfyTopics   = errors.New("a topic has 1 to 64 letters, digits, - and _, and an address has at most 20 topics")
	errNtfyPriority = errors.New("a priority is a number from 1 to 5, or min, low, default, high, max or urgent")
)

// NtfyRequest is a request of one of ntfy's clients. Each topic has all messages of the inbox.
type NtfyRequest struct {
	Topics []string
	Poll   bool // only stored messages, and no new ones
	Since  inbox.Since
	Filter NtfyFilter

	// Published is the publisher's ID of the message after which Since begins; "" for none. If no
	// message has it, Since is all.
	Published string
}

// NtfyParameters are the parameters of a request, which are in its query or in headers.
type NtfyParameters struct {
	Query  url.Values
	Header func(name string) string
}

// get returns the first parameter that has one of the names and is not empty.
func (p *NtfyParameters) get(names ...string) string {
	for _, name := range names {
		for _, value := range []string{p.query("x-" + name), p.query(name), p.Header("X-" + name)} {
			if value = strings.TrimSpace(value); value != "" {
				return value
			}
		}
	}
	// HTTP has headers of the names without X-, too; only these two are ntfy's.
	switch names[0] {
	case "since", "poll":
		return strings.TrimSpace(p.Header(names[0]))
	}
	return ""
}

// query returns the first value of a parameter of the query, in any case.
func (p *NtfyParameters) query(name string) string {
	for given, values := range p.Query {
		if strings.EqualFold(given, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// ParseNtfyRequest parses a client's request for topics, which are separated by commas. duration
// parses a duration, which may be in days.
func ParseNtfyRequest(topics string, p *NtfyParameters, now time.Time, duration func(string) (time.Duration, error)) (*NtfyRequest, error) {
	n := &NtfyRequest{Topics: strings.Split(topics, ",")}
	if len(n.Topics) > maxTopics || slices.ContainsFunc(n.Topics, func(t string) bool { return !ntfyTopic.MatchString(t) }) {
		return nil, errNtfyTopics
	}
	switch strings.ToLower(p.get("poll", "po")) {
	case "1", "true", "yes":
		n.Poll = true
	}
	var err error
	if since := p.get("since", "si"); since == "" {
		n.Since.None = !n.Poll
	} else if n.Since, err = inbox.ParseSince(since, now, duration); err != nil {
		if !ntfyID.MatchString(since) {
			return nil, err
		}
		n.Published = since
	}
	if n.Filter, err = parseNtfyFilter(p.get); err != nil {
		return nil, err
	}
	return n, nil
}

// Events calls f with the events for a message, one per topic, or with an event for the stream if m
// is nil.
func (n *NtfyRequest) Events(event string, m *inbox.Message, until time.Time, f func(e *NtfyEvent) error) error {
	if m == nil {
		e := newNtfyEvent(event, strings.Join(n.Topics, ","), time.Now())
		return f(&e)
	}
	for _, topic := range n.Topics {
		if e := newNtfyMessage(m, topic, until); n.Filter.selects(&e) {
			if err := f(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// NtfyFilter selects messages for one of ntfy's clients. An empty field selects all.
type NtfyFilter struct {
	ID, Message, Title string
	Priorities         []int
	Tags               []string
}

// ntfyPriorities are the names of priorities.
var ntfyPriorities = map[string]int{"min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5}

// parseNtfyFilter returns the filter of a request. get returns the first parameter that has
// one of the names and is not empty.
func parseNtfyFilter(get func(names ...string) string) (f NtfyFilter, err error) {
	f = NtfyFilter{ID: get("id"), Message: get("message", "m"), Title: get("title", "t")}
	for text := range strings.SplitSeq(get("priority", "prio", "p"), ",") {
		text = strings.ToLower(strings.TrimSpace(text))
		if text == "" {
			continue
		}
		n, named := ntfyPriorities[text]
		if !named {
			if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 5 {
				return f, errNtfyPriority
			}
		}
		f.Priorities = append(f.Priorities, n)
	}
	for tag := range strings.SplitSeq(get("tags", "tag", "ta"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.Tags = append(f.Tags, tag)
		}
	}
	return f, nil
}

// selects reports whether the client wants a message.
func (f *NtfyFilter) selects(e *NtfyEvent) bool {
	switch {
	case f.ID != "" && f.ID != e.ID && f.ID != e.published,
		f.Message != "" && f.Message != e.Message,
		f.Title != "" && f.Title != e.Title,
		len(f.Priorities) > 0 && !slices.Contains(f.Priorities, e.Priority):
		return false
	}
	return !slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(e.Tags, tag) })
}
