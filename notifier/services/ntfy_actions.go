package services

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ntfyMaxActions is the maximum number of buttons of a notification.
const ntfyMaxActions = 3

// ntfyAction is a button of a notification.
// See https://docs.ntfy.sh/publish/#action-buttons.
type ntfyAction struct {
	Action  string            `json:"action"`
	Label   string            `json:"label"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Clear   bool              `json:"clear,omitempty"`
}

// ntfyOwnActions returns the buttons of the URL, each in the encoding of the parameter,
// which is JSON or ntfy's short form. ok is false if they cannot be read.
func ntfyOwnActions(text string) (actions []string, isJSON, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		quote := rune(0)
		actions = strings.FieldsFunc(text, func(r rune) bool {
			switch {
			case quote == r:
				quote = 0
			case quote == 0 && (r == '"' || r == '\''):
				quote = r
			}
			return quote == 0 && r == ';'
		})
		return actions, false, true
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil {
		return nil, true, false
	}
	for _, x := range raw {
		actions = append(actions, string(x))
	}
	return actions, true, true
}

// ntfyFreeActions returns the number of buttons that a notification may have in addition to the
// URL's.
func ntfyFreeActions(text string) int {
	own, _, ok := ntfyOwnActions(text)
	if !ok {
		return 0
	}
	return max(ntfyMaxActions-len(own), 0)
}

// ntfyActions returns the buttons of the URL and of the link of m. To acknowledge an
// incident, one does it at once, and one opens the page if there is room.
func ntfyActions(text string, m *notifier.Message) string {
	free := ntfyFreeActions(text)
	if m.Link.URL == "" || free == 0 {
		return text
	}
	own, isJSON, _ := ntfyOwnActions(text)
	actions := []ntfyAction{
		{
			Action: "http", Label: m.Link.Label, URL: m.Link.URL, Body: "do=acknowledge", Clear: true,
			Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		},
		{Action: "view", Label: "Incident", URL: m.Link.URL},
	}
	if m.Asks() {
		actions = nil
		for _, l := range m.Buttons(free) {
			actions = append(actions, ntfyAction{Action: "view", Label: l.Label, URL: l.URL})
		}
	}
	for _, a := range actions {
		if len(own) < ntfyMaxActions {
			own = append(own, a.encode(isJSON))
		}
	}
	if isJSON {
		return "[" + strings.Join(own, ",") + "]"
	}
	return strings.Join(own, "; ")
}

// ntfyURL escapes what separates the parts of a button in the short form.
var ntfyURL = strings.NewReplacer(",", "%2C", ";", "%3B", `"`, "%22", "'", "%27", " ", "%20")

// encode returns the button as JSON or in the short form.
func (a ntfyAction) encode(isJSON bool) string {
	if isJSON {
		text, _ := json.Marshal(a) // it has strings only
		return string(text)
	}
	var out strings.Builder
	out.WriteString(a.Action + ", " + a.Label + ", " + ntfyURL.Replace(a.URL))
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		out.WriteString(", headers." + name + "=" + a.Headers[name])
	}
	if a.Body != "" {
		out.WriteString(", body=" + a.Body)
	}
	if a.Clear {
		out.WriteString(", clear=true")
	}
	return out.String()
}
