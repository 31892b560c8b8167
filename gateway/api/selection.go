package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// SelectTags selects among the destinations of a key and fills in their templates from the request.
// choose returns the destinations that a tag expression matches; the empty expression means a
// request without tags. An error of choose becomes a 424.
func (q *Request) SelectTags(choose func(notifier.TagExpr) ([]notifier.Target, error)) (*message.Selection, error) {
	w, err := q.Wish()
	if err != nil {
		return nil, err
	}
	targets, err := w.Choose(choose)
	if err != nil {
		return nil, Errorf(http.StatusFailedDependency, "%w", err)
	}
	return q.selected(message.Selection{Targets: q.fill(targets, w.Values)}), nil
}

// selected returns s, with the warnings about the request.
func (q *Request) selected(s message.Selection) *message.Selection {
	q.selection = s
	q.selection.Warn(q.warnings...)
	return &q.selection
}

// maxSuggestions bounds the URLs of one request for which a correction is
// searched, because the search takes a while.
const maxSuggestions = 5

// SelectURLs selects the destinations of the URLs in the request or, if it has none, fallback.
// parse makes a destination of a URL; the Request closes it. URLs that parse rejects are part of
// the report; if it rejects all, SelectURLs returns a 400.
func (q *Request) SelectURLs(parse func(url string) (*notifier.Destination, error),
	fallback []notifier.Target,
) (*message.Selection, error) {
	urls, err := q.content.urls(q.limits.Client)
	if err != nil {
		return nil, err
	}
	if err := q.content.checkTagTypes(); err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		if len(fallback) == 0 {
			return nil, badField(fieldURLs, "the field urls is missing; set it to the notification URLs to send to")
		}
		return q.selected(message.Selection{Targets: fallback}), nil
	}
	s := q.selected(message.Selection{Transient: true, Limits: q.limits.Client})
	var first error
	for i, url := range urls {
		d, err := parse(url)
		if err == nil {
			s.Add(d, i+1, len(urls))
			continue
		}
		if i-len(s.Targets) < maxSuggestions {
			err = message.WithSuggestion(url, err)
		}
		err = fmt.Errorf("URL %d of %d: %w", i+1, len(urls), err)
		s.Reject(i, url, err)
		if first == nil {
			first = err
		}
	}
	q.opened = s.Targets
	if len(s.Targets) == 0 {
		e := badRequest("no URL of the field urls can be used, so nothing was sent; %w", first)
		e.Field = fieldURLs
		e.Results = s.Results(nil)
		return nil, e
	}
	return s, nil
}

// maxTagJSON bounds the JSON of a tag expression, in bytes.
const maxTagJSON = 64 << 10

// tags returns the tag expression of the body or, if it is empty, of the query
// string.
func (c *content) tags() (notifier.TagExpr, error) {
	for _, name := range tagFields {
		v, err := c.fields[name].tags(name)
		if err != nil {
			return notifier.TagExpr{}, err
		}
		if e, err := parseTags(name, v); err != nil || !e.Empty() {
			return e, err
		}
	}
	for _, name := range tagFields {
		if e, err := parseTags(name, anyOf(c.query[name])); err != nil || !e.Empty() {
			return e, err
		}
	}
	return notifier.TagExpr{}, nil
}

// tags returns the value in the form that [notifier.ParseTags] takes. Several
// texts of a form are alternatives.
func (f field) tags(name string) (any, error) {
	switch {
	case f.absent():
		return nil, nil
	case len(f.texts) > 0:
		return anyOf(f.texts), nil
	case len(f.json) > maxTagJSON:
		return nil, badField(name, "the field %s is longer than %s", name, formatSize(maxTagJSON))
	}
	var v any
	if err := json.Unmarshal(f.json, &v); err != nil {
		return nil, badField(name, "the field %s: %w", name, err)
	}
	return v, nil
}

// checkTagTypes returns an error if a tag field has the wrong type. Requests
// with URLs do not use tags, but a wrong type is still a mistake of the client.
func (c *content) checkTagTypes() error {
	for _, name := range tagFields {
		v, err := c.fields[name].tags(name)
		if err != nil {
			return err
		}
		if !isTags(v) {
			_, err := parseTags(name, v)
			return err
		}
	}
	return nil
}

// isTags reports whether v has the type of a tag expression: a text, or an
// array of texts and of such arrays.
func isTags(v any) bool {
	switch v := v.(type) {
	case nil, string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return item == nil || !isTags(item) })
	}
	return false
}

func anyOf(texts []string) any {
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return texts[0]
	}
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func parseTags(name string, v any) (notifier.TagExpr, error) {
	e, err := notifier.ParseTags(v)
	if err != nil {
		return e, badField(name, "the field %s: %w", name, err)
	}
	return e, nil
}
