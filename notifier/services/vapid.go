package services

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

var _ = notifier.Register[vapid]()

// vapid sends Web Push messages to browsers (RFC 8030). It encrypts them (RFC 8291) and signs the
// requests (RFC 8292). A push contains the text of the message, which is displayed by the service
// worker of the web site that the browser subscribed on.
type vapid struct {
	user, host, from string
	contact          string // from, or user@host
	keyFile, subFile notifier.FileParam
	targets          []string
	names            []string // of the subscriptions to send to
	ttl              int
	payload          string
	key              *webpush.Key
	subscriptions    map[string]*webpush.Subscription
}

// vapidTTL is a day. With 0, a push service may drop a message that it cannot deliver
// at once (RFC 8030, section 5.2), for example because the browser is not running.
const vapidTTL = 24 * 3600

func (v *vapid) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Web Push", "https://developer.mozilla.org/en-US/docs/Web/API/Push_API"
	s.Setup = "Create a key pair, for example with npx web-push generate-vapid-keys, subscribe the browser " +
		"with the public key on your web site, and give the private key and the JSON of the subscription here."
	s.Groups(notifier.GroupPhone)
	s.Words("push", "browser", "chrome", "firefox", "safari", "edge", "service worker")
	s.URL("vapid://{user}@{host}[/{targets...}]", "vapid://{from}[/{targets...}]")
	s.Way(2, "with the sender's address in one field")
	s.Way(1, "with the sender's address in two fields")
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Body: webpush.MaxPayload}
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.String(&v.user, "user", "", "e-mail address of the sender, before the @").Example("alerts")
	s.Host(&v.host, "host", "e-mail address of the sender, after the @")
	s.String(&v.from, "from", "", "e-mail address of the sender").Normalize(mail.CheckAddress).Example("user@example.com")
	s.File(&v.keyFile, "keyfile", "private VAPID key: path of a PEM file, or base64 of it or of its 32 bytes", 16<<10).
		Inline(vapidKeyParam).Secret().Required().
		Example("rHAmLVqJ5xiGWZ3Tl0ap3iH6VHGjoE3rvWnTRYqKQ5I")
	s.File(&v.subFile, "subfile", "one or more subscriptions in JSON: path of a file, or base64 of it", 5<<20).
		Inline(jsonFileParam).Secret().Required().
		Example(vapidExample)
	s.List(&v.targets, "targets", "names of subscriptions; default: all").Alias("to").Example("jo")
	s.Int(&v.ttl, "ttl", vapidTTL, "seconds to keep a message for a browser that is offline").Range(0, webpush.MaxTTL)
	s.Choice(&v.payload, "payload", "text", []string{"text", "json"},
		"the text, or JSON with title, body, type, and an incident's tag and link")
	s.Ignore("mode", "each subscription has the address of its push service")
}

func (v *vapid) Finish(s *notifier.Schema) error {
	contact, ok := mail.ParseAddress(cmp.Or(v.from, v.user+"@"+v.host))
	if !ok {
		return errors.New("begin the URL with your e-mail address, as in vapid://user@example.com")
	}
	v.contact = contact.Address
	if v.payload == "json" {
		// Quotation marks and line breaks take two bytes in JSON.
		s.Limits.Title, s.Limits.Body = 150, 1700
		s.Acknowledge = notifier.AcknowledgeByButton
	}
	file, subscriptions := v.keyFile.Content(), v.subFile.Content()
	if file == nil || subscriptions == nil {
		return nil // see Files.Unread
	}
	var err error
	if v.key, err = webpush.ParseKey(file); err != nil {
		return fmt.Errorf("keyfile %w", err)
	}
	if v.subscriptions, err = readSubscriptions(subscriptions); err != nil {
		return err
	}
	if len(v.targets) == 0 {
		v.names = slices.Sorted(maps.Keys(v.subscriptions))
		return nil
	}
	v.names = slices.DeleteFunc(slices.Clone(v.targets), func(name string) bool { return v.subscriptions[strings.ToLower(name)] == nil })
	if len(v.names) == 0 {
		return errors.New("a target is not the name of a subscription in subfile")
	}
	return nil
}

// Warning implements notifier.Warner.
func (v *vapid) Warning() string {
	if v.names != nil && len(v.names) < len(v.targets) {
		return "a target is not the name of a subscription in subfile and is left out"
	}
	return ""
}

func (v *vapid) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload, err := v.text(m)
	if err != nil {
		return err
	}
	p := &webpush.Push{Payload: payload, TTL: v.ttl, Topic: m.NotificationID(), Contact: "mailto:" + v.contact}
	if m.Type == notifier.Failure || m.Type == notifier.Warning {
		p.Urgency = webpush.UrgencyHigh
	}
	return c.Steps.Each(ctx, v.names, func(ctx context.Context, name string) error {
		return v.key.Send(ctx, c, v.subscriptions[strings.ToLower(name)], p)
	})
}

// text returns the data for the service worker.
func (v *vapid) text(m *notifier.Message) ([]byte, error) {
	if v.payload == "text" {
		return []byte(m.Body), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var actions []vapidAction
	acknowledge, answer := m.Link.Fields()
	if acknowledge != "" {
		actions = []vapidAction{{"acknowledge", m.Link.Label}}
	}
	err := e.Encode(struct {
		Title          string        `json:"title"`
		Body           string        `json:"body"`
		Type           notifier.Type `json:"type"`
		Tag            string        `json:"tag,omitempty"`
		AcknowledgeURL string        `json:"acknowledge_url,omitempty"`
		AnswerURL      string        `json:"answer_url,omitempty"`
		Actions        []vapidAction `json:"actions,omitempty"`
	}{m.Title, m.Body, m.Type, m.NotificationID(), acknowledge, answer, actions})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// vapidAction is an action of the notification, as the service worker gives it to
// showNotification. See https://developer.mozilla.org/docs/Web/API/Notification/actions.
type vapidAction struct {
	Action string `json:"action"`
	Title  string `json:"title"`
}

// vapidExample is a subscription named jo, with the key and the secret of the example
// in RFC 8291, section 5.
const vapidExample = "eyJqbyI6eyJlbmRwb2ludCI6Imh0dHBzOi8vcHVzaC5leGFtcGxlLm5ldC9qbyIsImtleXMiOnsicDI1NmRo" +
	"IjoiQkNWeHNyN05fZU5nVlJxdkh0RDB6VFpzRWM2LVZWLUp2TGV4aHFVek9SY3hhT3ppNi1BWVdYdlRCSG00" +
	"Ymp5UGpzN1ZkOHBaR0g2U1Jwa050b0lBaXc0IiwiYXV0aCI6IkJUQlpNcUhINnI0VHRzN0pfYVNJZ2cifX19"
