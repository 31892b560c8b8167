package dispatch

import (
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The bounds of what is remembered of alerts.
const (
	MaxAlertTitles = 10_000
	MaxAlertTitle  = 200 // bytes
)

// AlertTitles remembers the titles of alerts that clients of incident tools have opened, by
// incident. The message that closes an alert has only its name, which is often a hash. The zero
// value is ready for use.
type AlertTitles struct {
	mu     sync.Mutex
	titles map[string]string
}

// alertState matches the state at the beginning of a title of Alertmanager or Grafana.
var alertState = lazyregexp.New(`^\[[A-Z]+(:\d+)?(, [A-Z]+(:\d+)?)*\] *`)

// Note remembers the title of a message that opens an incident.
func (x *AlertTitles) Note(incident string, m *notifier.Message) {
	if incident == "" || StateOf(m) != notifier.Open {
		return
	}
	title := m.Title
	if title == "" {
		title = markup.FirstLine(m.WithoutDialect().Body)
	}
	x.set(incident, strings.TrimSpace(alertState.ReplaceAllString(title, "")))
}

// Get returns the title of the alert that has opened an incident, or "" if it is unknown.
func (x *AlertTitles) Get(incident string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.titles[incident]
}

// set remembers a title. If there are too many, it forgets another one.
func (x *AlertTitles) set(incident, title string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.titles == nil {
		x.titles = map[string]string{}
	}
	delete(x.titles, incident)
	for other := range x.titles {
		if len(x.titles) < MaxAlertTitles {
			break
		}
		delete(x.titles, other)
	}
	x.titles[incident] = markup.TruncateBytes(title, MaxAlertTitle)
}
