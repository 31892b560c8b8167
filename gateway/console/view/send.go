package view

import (
	"html/template"
	"strings"
)

// SendPage has a form for messages.
type SendPage struct {
	Address     string // address of the page, with the token in its query, to which messages are posted
	Messages    string // the address of messages in the queue, without their ID; "" without a queue
	Key         string // "" for messages with URLs
	Tags        []Tag
	Otherwise   string // the services of a message without a chosen tag
	Others      bool   // there are further destinations
	MaxFiles    int    // attachments per message; 0 if none are allowed
	MaxFileSize string
	Sources     []string     // sources whose payloads can be previewed
	Tabs        []Tab        // tabs of the key in the console; none on the page for senders
	Keys        string       // the address of the list of keys, if there are Tabs
	Lines       []CopiedLine // how programs send to the key; none on the page for senders
	Tokens      int          // number of the key's tokens
	Login       bool         // the lines contain a login of the server
	Device      string       // the address of the page that adds this device to the key; "" if that needs an invitation
}

// Preview returns the address that previews are posted to.
func (p SendPage) Preview() string {
	if strings.Contains(p.Address, "?") {
		return p.Address + "&preview"
	}
	return p.Address + "?preview"
}

// Tag is a tag of a key and the services that have it.
type Tag struct{ Name, Services string }

// The policy includes the style of the preview, because the frame in which the page's script shows
// it has both policies.
var sendParts = newParts(source{
	templates: []string{"send.html", "key_tabs.html", "key_lines.html"},
	scripts:   []string{"send.js"},
	styles:    []string{mainStyle, previewStyle},
	policy:    policyForms + policyFrames,
})

func (p SendPage) view() view {
	title := "Send a message"
	if p.Key != "" {
		title += " to " + p.Key
	}
	return view{title: title, parts: sendParts, wide: len(p.Tabs) > 0}
}

// PreviewPage shows a message like an HTML destination, in a frame of the page with the form.
type PreviewPage struct {
	Title string
	Note  string        // note about the message
	Body  template.HTML // HTML of any sender; the policy allows no scripts
}

var previewParts = newParts(source{templates: []string{"preview.html"}, styles: []string{previewStyle}, policy: policyFrame, bare: true})

func (p PreviewPage) view() view { return view{parts: previewParts} }
