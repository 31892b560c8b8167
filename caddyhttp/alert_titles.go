package caddyhttp

import (
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The bounds of what is remembered of alerts.
const (
	maxAlertTitles = 10_000
	maxAlertTitle  = 200 // bytes
)

// alertTitles are the titles of alerts that clients of incident tools have opened, by
// their incidents. What closes an alert later has only its name, which is often a hash.
// The zero value is ready for use.
type alertTitles struct {
	mu     sync.Mutex
	titles map[string]string
}

// alertState matches the state with which Alertmanager and Grafana begin a title.
var alertState = lazyregexp.New(`^\[[A-Z]+(:\d+)?(, [A-Z]+(:\d+)?)*\] *`)

// tell remembers the title of a message that opens an incident. In another one, it
// replaces name, the name of the alert, by this title. An empty name replaces nothing.
func (x *alertTitles) tell(incident, name string, m *notifier.Message) {
	switch {
	case incident == "":
	case name != "":
		text := &m.Title
		if m.Title == "" {
			text = &m.Body
		}
		if title := x.get(incident); title != "" {
			*text = strings.Replace(*text, name, title, 1)
		}
	case stateOf(m) == notifier.Open:
		title := m.Title
		if title == "" {
			title = markup.FirstLine(m.Body)
		}
		x.set(incident, strings.TrimSpace(alertState.ReplaceAllString(title, "")))
	}
}

func (x *alertTitles) get(incident string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.titles[incident]
}

// set remembers a title. If there are too many, it forgets any other one.
func (x *alertTitles) set(incident, title string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.titles == nil {
		x.titles = map[string]string{}
	}
	delete(x.titles, incident)
	for other := range x.titles {
		if len(x.titles) < maxAlertTitles {
			break
		}
		delete(x.titles, other)
	}
	x.titles[incident] = markup.TruncateBytes(title, maxAlertTitle)
}
