package notifier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// defaultAgent is the User-Agent of the functions that need no [Sender].
const defaultAgent = "notifier (+https://github.com/caddy-notify/caddy-notify)"

// defaultSender is the sender of [Send], as http.DefaultClient is the client of http.Get.
var defaultSender = sync.OnceValue(func() *Sender { return NewSender(egress.NewPool(defaultAgent), 0) })

// Send sends a message to a notification URL, or to several, which are separated by commas or
// white space:
//
//	err := notifier.Send(ctx, "discord://id/token, ntfys://ntfy.sh/topic", &notifier.Message{Body: "done"})
//
// All destinations get the message at once. Send returns when the last of them has it or has
// failed; then the error is a [*SendError] with a [Result] for each. If one of the URLs cannot be
// used, nothing is sent, and the error wraps a [*URLError]. No error has a secret of a URL.
//
// The program needs the services: it imports package services, or a package below it, such as
// services/slack, for its effect.
//
// Without a deadline, ctx gives each destination [DefaultTimeout]. When ctx ends, Send stops. A
// destination is tried once more if it asks for that, and as often as the parameter retry of its
// URL says, if there is time.
//
// The message is from [Message.Identity] or, if that is nil, from the program, by the name of its
// file. A message about an incident waits while an earlier one goes to the same destination.
//
// URLs may reach every address, so they must not come from strangers: for those, use [Parse]
// with a policy and [Sender.Send]. They cannot name files: see [ParseWithFiles].
//
// Connections are kept for the next call, sessions of services that have them are not. A program
// that sends often to such a service keeps its [Destination]: see [Sender.Parse].
func Send(ctx context.Context, urls string, m *Message) error {
	return defaultSender().SendTo(ctx, urls, m)
}

// SendTo is like the function [Send], with the pool and the limits of s.
func (s *Sender) SendTo(ctx context.Context, urls string, m *Message) error {
	if m == nil || !hasText(m.Title) && !hasText(m.Body) && len(m.Attachments) == 0 {
		return errors.New("the message is empty; give it a title, a body or an attachment")
	}
	list := SplitURLs(urls)
	if len(list) == 0 {
		return errors.New("there is no notification URL; write for example json://example.com")
	}
	r := &SendError{sender: s, message: *m, urls: list, Results: make([]Result, len(list))}
	if r.message.Identity == nil {
		r.message.Identity = programIdentity()
	}
	r.message.Time = cmp.Or(r.message.Time, time.Now())
	return r.send(ctx, func(int) bool { return true })
}

// programIdentity returns the identity of messages from the program that runs.
func programIdentity() *Identity {
	name := cmp.Or(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), "notifier")
	return &Identity{Name: name, Description: name, URL: "https://github.com/caddy-notify/caddy-notify"}
}

// SendError is returned by [Send] and [Sender.SendTo] when at least one destination has not got the
// message. errors.AsType finds in it what its results wrap, such as a [*StatusError].
type SendError struct {
	// Results has a result for each URL, in their order. Err is nil if the destination has the
	// message. Temporary is true if another attempt can succeed, after RetryAfter.
	Results []Result

	sender  *Sender
	message Message
	urls    []string
}

// Error returns the failures, each with the name of its service.
func (e *SendError) Error() string {
	errs := e.Unwrap()
	text := severalErrors(errs).Error()
	if len(e.Results) > 1 {
		text = fmt.Sprintf("%d of %d destinations failed: %s", len(errs), len(e.Results), strings.ReplaceAll(text, "\n", "; "))
	}
	return text
}

// Unwrap returns the error of each destination that has failed, with the name of its service.
func (e *SendError) Unwrap() (errs []error) {
	for i := range e.Results {
		if r := &e.Results[i]; !r.OK() {
			errs = append(errs, fmt.Errorf("%s: %w", r.Service, r.Err))
		}
	}
	return errs
}

// Temporary reports whether [SendError.Retry] can succeed at one of the destinations.
func (e *SendError) Temporary() bool {
	return slices.ContainsFunc(e.Results, func(r Result) bool { return !r.OK() && r.Temporary })
}

// RetryAfter returns the longest time that a destination asks to wait before the next attempt, or 0
// if none asks.
func (e *SendError) RetryAfter() (longest time.Duration) {
	for i := range e.Results {
		longest = max(longest, e.Results[i].RetryAfter)
	}
	return longest
}

// Retry sends the message again to the destinations whose failure is temporary, and nothing that
// they already have. The error is as that of [Send] and covers all destinations. The attachments
// of the message must still be readable.
func (e *SendError) Retry(ctx context.Context) error {
	again := &SendError{sender: e.sender, message: e.message, urls: e.urls, Results: slices.Clone(e.Results)}
	return again.send(ctx, func(i int) bool { return !e.Results[i].OK() && e.Results[i].Temporary })
}

// send sends to the URLs that are chosen by their index, and updates their results.
func (e *SendError) send(ctx context.Context, chosen func(i int) bool) error {
	var targets []Target
	var places []int
	for i, url := range e.urls {
		if !chosen(i) {
			continue
		}
		d, err := e.sender.ParseOnce(url, nil)
		if err != nil {
			return TargetError(i, len(e.urls), WithSuggestion(url, err))
		}
		defer d.Close()
		targets = append(targets, Target{Destination: d, Progress: e.Results[i].Progress})
		places = append(places, i)
	}
	o := Options{Transient: true, StopWithContext: true}
	if end, ok := ctx.Deadline(); ok {
		o.Timeout = time.Until(end) + time.Second // ctx ends first, so that its error is the cause
	}
	for i, r := range e.sender.Send(ctx, &e.message, targets, o).Results {
		e.Results[places[i]] = r
	}
	if (&Report{Results: e.Results}).OK() {
		return nil
	}
	return e
}
