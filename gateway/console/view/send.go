package view

import (
	"html/template"
	"strings"
)

// SendPage has a form for messages.
type SendPage struct {
	Address     string // of the page, with the token of its query; messages are posted to it
	Messages    string // the address of messages in the queue, without their ID; "" without a queue
	Key         string // "" for messages with URLs
	Tags        []Tag
	Otherwise   string // the services that get a message if no tag is chosen
	Others      bool   // there are more destinations than those
	MaxFiles    int    // attachments of a message; 0 if none are allowed
	MaxFileSize string
	Sources     []string     // whose payloads can be previewed
	Tabs        []Tab        // of the key in the console; none on the page for those who send
	Keys        string       // the address of the list of keys, with Tabs
	Lines       []CopiedLine // how programs send to the key; none there
	Tokens      int          // how many tokens the key has
	Login       bool         // the lines have a login of the server
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

// The policy includes the style of the preview, which the script of the page
// shows in a frame that has both policies.
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

// PreviewPage shows a message as an HTML destination shows it. The page with the
// form has it in a frame.
type PreviewPage struct {
	Title string
	Note  string        // about the message
	Body  template.HTML // of any sender: the policy allows no scripts
}

var previewParts = newParts(source{templates: []string{"preview.html"}, styles: []string{previewStyle}, policy: policyFrame, bare: true})

func (p PreviewPage) view() view { return view{parts: previewParts} }
