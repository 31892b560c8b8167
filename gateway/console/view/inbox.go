package view

import "time"

// InboxSince is the age of messages that an inbox shows by default.
const InboxSince = "24h"

// InboxPage shows the messages in the inbox of a key, the newest first.
type InboxPage struct {
	Key      string
	Keep     string // how long messages are kept, such as 7d
	Since    string // the time from which they are shown, as the client has written it
	Messages []InboxMessage
	More     bool   // there are older messages
	Problem  string // why they are not shown; "" if they are
}

// InboxMessage is a message with its text.
type InboxMessage struct {
	ID    string
	Time  time.Time
	Type  string // info, success, warning or failure
	Title string // "" for none
	Text  string
	Cut   bool // the text was longer
}

var inboxParts = newParts(source{templates: []string{"inbox.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p InboxPage) view() view {
	since := named("since", p.Since)
	if p.Since == InboxSince {
		since = ""
	}
	return view{title: "Messages of " + p.Key, parts: inboxParts, wide: true, data: struct {
		InboxPage
		Line FilterLine
	}{p, newFilterLine("./messages", since)}}
}
