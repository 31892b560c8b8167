package programs

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ntfyAction is a button of a message for ntfy.
type ntfyAction struct {
	action, label, url string
	method, body       string
	clear              bool              // the button removes the notification
	headers            map[string]string // headers of the request; nil for none
}

// ntfyActionsJSON returns buttons as ntfy's clients read them.
func ntfyActionsJSON(all []ntfyAction) string {
	var out []map[string]any
	for i, a := range all[:min(len(all), maxNtfyActions)] {
		b := map[string]any{"id": strconv.Itoa(i + 1), "action": a.action, "label": a.label, "clear": a.clear}
		for name, value := range map[string]string{"url": a.url, "method": a.method, "body": a.body} {
			if value != "" {
				b[name] = value
			}
		}
		if len(a.headers) > 0 {
			b["headers"] = a.headers
		}
		out = append(out, b)
	}
	text, err := json.Marshal(out)
	if err != nil || len(out) == 0 || len(text) > maxNtfyActionsSize {
		return ""
	}
	return string(text)
}

// The bounds of the buttons in an inbox. ntfy has three per message.
const (
	maxNtfyActions     = 3
	maxNtfyActionsSize = 4 << 10 // bytes
)

// actions returns the links of the buttons. It adds a warning to m for other buttons.
func (n ntfyMessage) actions(m *source.Message) (links []ntfyAction) {
	all, ok := readNtfyActions(payload.Get(n.json, "actions"), n.field("actions", "action"))
	if !ok {
		m.Warnings = append(m.Warnings, "ntfy's actions cannot be read, so they have no effect")
	}
	m.Published.Actions = ntfyActionsJSON(all)
	for _, a := range all[:min(len(all), compose.MaxFacts)] {
		switch {
		case a.action == "view" && a.url != "":
			links = append(links, a)
		case a.action != "":
			m.Warnings = append(m.Warnings, "ntfy's action "+markup.TruncateBytes(a.action, 20)+" has no effect here")
		}
	}
	return links
}

// readNtfyActions returns the buttons of a message, which are JSON or in the short
// format of ntfy.
func readNtfyActions(v any, s string) (out []ntfyAction, ok bool) {
	if v == nil && strings.HasPrefix(s, "[") {
		var err error
		if v, err = payload.Decode([]byte(s)); err != nil {
			return nil, false
		}
	}
	if v == nil {
		return parseNtfyActions(s)
	}
	for _, a := range payload.Objects(v, compose.MaxFacts) {
		button := ntfyAction{
			action: strings.ToLower(payload.Text(a["action"])), label: payload.Text(a["label"]), url: payload.Text(a["url"]),
			method: payload.Text(a["method"]), body: payload.Text(a["body"]), clear: isTrue(payload.Text(a["clear"])),
		}
		if headers, ok := a["headers"].(map[string]any); ok {
			for name, value := range headers {
				button.setHeader(name, payload.Text(value))
			}
		}
		out = append(out, button)
	}
	return out, true
}

// ntfyActionKey matches the name of a value of a button.
var ntfyActionKey = lazyregexp.New(`^([-.\w]{1,100})\s*=\s*`)

// parseNtfyActions reads the short format: "view, Open, https://…; http, Close, …". The
// values are separated by commas, the buttons by semicolons, and each value may have a
// name and quotes. See https://docs.ntfy.sh/publish/#action-buttons.
func parseNtfyActions(s string) (out []ntfyAction, ok bool) {
	var a ntfyAction
	for place := 0; s != ""; place++ {
		s = strings.TrimLeft(s, " \t\r\n")
		name := ""
		if m := ntfyActionKey.FindStringSubmatch(s); m != nil {
			name, s = m[1], s[len(m[0]):]
		} else if place < 3 {
			name = []string{"action", "label", "url"}[place]
		}
		value, rest, ok := cutNtfyValue(s)
		if !ok {
			return out, false
		}
		a.set(name, value)
		if s = rest; s == "" || s[0] == ';' {
			out = append(out, a)
			a, place = ntfyAction{}, -1
		}
		s = strings.TrimPrefix(strings.TrimPrefix(s, ";"), ",")
	}
	return out, true
}

// set sets a named value of a button in the short format.
func (a *ntfyAction) set(name, value string) {
	if header, ok := strings.CutPrefix(name, "headers."); ok {
		a.setHeader(header, value)
		return
	}
	switch strings.ToLower(name) {
	case "action":
		a.action = strings.ToLower(value)
	case "label":
		a.label = value
	case "url":
		a.url = value
	case "method":
		a.method = value
	case "body":
		a.body = value
	case "clear":
		a.clear = isTrue(value)
	}
}

func (a *ntfyAction) setHeader(name, value string) {
	if a.headers == nil {
		a.headers = map[string]string{}
	}
	a.headers[name] = value
}

// cutNtfyValue returns the value at the beginning of s and the rest, which is empty or begins with
// a separator.
func cutNtfyValue(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		end := strings.IndexAny(s, ",;")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimSpace(s[:end]), s[end:], true
	}
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == quote:
			i++
			b.WriteByte(quote)
		case s[i] == quote:
			rest = strings.TrimLeft(s[i+1:], " \t\r\n")
			return b.String(), rest, rest == "" || rest[0] == ',' || rest[0] == ';'
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
