package programs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

func init() {
	source.Register(source.Format{
		Name:    "pagerduty",
		Program: "PagerDuty",
		Doc:     "https://developer.pagerduty.com/docs/events-api-v2-overview",
		Checked: "Events API v2",
		Has:     []string{"event_action|routing_key", "payload.summary|dedup_key", "event_action?"},
		Tokens:  []source.TokenPlace{{Field: "routing_key"}},
		API: &source.API{
			Endpoints: []source.Endpoint{
				{Paths: []string{"", "enqueue", "v2/enqueue"}, Read: readPagerDuty, Reply: replyPagerDuty},
				{Paths: []string{"change/enqueue", "v2/change/enqueue"}, Read: readPagerDutyChange, Reply: replyPagerDutyChange},
			},
			Images: true,
			Alerts: true,
		},
	})
}

// readPagerDuty reads an event about an alert.
func readPagerDuty(ctx context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("PagerDuty")
	if err != nil {
		return nil, err
	}
	m := &source.Message{Incident: strings.TrimSpace(payload.Text(payload.Get(data, "dedup_key")))}
	summary := strings.TrimSpace(payload.Text(payload.Get(data, "payload", "summary")))
	state := notifier.Open
	switch action := payload.Text(payload.Get(data, "event_action")); action {
	case "trigger":
		if summary == "" {
			return nil, source.Errorf(http.StatusBadRequest, "the field payload.summary is missing")
		}
		m.Incident = cmp.Or(m.Incident, newDedupKey(r))
		m.Priority = payload.Text(payload.Get(data, "payload", "severity"))
		m.Type = pagerDutyType(m, m.Priority)
		compose.SetOver(m, summary)
	case "acknowledge", "resolve":
		if m.Incident == "" {
			return nil, source.Errorf(http.StatusBadRequest, "the field dedup_key is missing; it says which alert to %s", action)
		}
		m.Type, state = string(notifier.Success), notifier.Resolved
		if action == "acknowledge" {
			m.Type, m.Acknowledged, state = string(notifier.Info), true, notifier.Acknowledged
		}
	case "":
		return nil, source.Errorf(http.StatusBadRequest, "the field event_action is missing; write trigger, acknowledge or resolve")
	default:
		return nil, source.Errorf(http.StatusBadRequest, "the field event_action is %q; write trigger, acknowledge or resolve",
			markup.TruncateBytes(action, 40))
	}
	if summary == "" {
		summary = compose.NameAlert(m, r)
	}
	var body compose.Lines
	compose.SetHeadline(m, compose.WithState(state, summary), &body)
	addPagerDutyText(ctx, m, data, &body)
	m.Body = body.String()
	compose.Echo(m, "dedup_key", m.Incident)
	return compose.CheckContent(m, "PagerDuty", r)
}

// readPagerDutyChange reads an event about a change that is no problem, such as a
// deployment.
func readPagerDutyChange(ctx context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("PagerDuty")
	if err != nil {
		return nil, err
	}
	summary := payload.Text(payload.Get(data, "payload", "summary"))
	if strings.TrimSpace(summary) == "" {
		return nil, source.Errorf(http.StatusBadRequest, "the field payload.summary is missing")
	}
	m := &source.Message{Type: string(notifier.Info)}
	var body compose.Lines
	compose.SetHeadline(m, summary, &body)
	addPagerDutyText(ctx, m, data, &body)
	m.Body = body.String()
	return compose.CheckContent(m, "PagerDuty", r)
}

// pagerDutyType returns the type for the severity of an alert. An alert without a
// severity that PagerDuty knows is a failure.
func pagerDutyType(m *source.Message, severity string) string {
	t, known := typeword.TypeOf(severity)
	if severity == "" || !known || t == notifier.Success {
		t = notifier.Failure
		if severity != "" {
			m.Warnings = append(m.Warnings, "PagerDuty has no such severity, so the message has the type failure; write critical, error, "+
				"warning or info")
		}
	}
	return string(t)
}

// addPagerDutyText adds the fields of an event other than its summary.
func addPagerDutyText(ctx context.Context, m *source.Message, data any, body *compose.Lines) {
	client, address := payload.Text(payload.Get(data, "client")), payload.Text(payload.Get(data, "client_url"))
	details := payload.Get(data, "payload", "custom_details")
	ignored := alertmanagerDetails(ctx, details, address, body)
	body.Details(details, ignored...)
	var place []string
	for _, name := range []string{"source", "component", "group", "class"} {
		value := strings.TrimSpace(payload.Text(payload.Get(data, "payload", name)))
		// Grafana sets the class and the group to default.
		if value != "" && value != "default" && value != client && !strings.Contains(m.Title, value) {
			place = append(place, name+": "+markup.TruncateBytes(value, compose.MaxDetail))
		}
	}
	if s := strings.Join(place, ", "); s != "" {
		body.Add(strings.ToUpper(s[:1]) + s[1:])
	}
	links := payload.Objects(payload.Get(data, "links"), compose.MaxFacts)
	for _, l := range append(links, map[string]any{"text": client, "href": address}) {
		if href := payload.Text(l["href"]); source.IsAddress(href) && !body.Has(href) {
			body.Add(compose.Field(payload.Text(l["text"]), href))
		}
	}
	for _, image := range payload.Objects(payload.Get(data, "images"), source.MaxImages) {
		compose.AddImage(m, image["src"])
		if href := payload.Text(payload.Or(image["href"], image["src"])); source.IsAddress(href) && !body.Has(href) {
			body.Add(compose.Field(payload.Text(image["alt"]), href))
		}
	}
}

// alertmanagerDetails adds the alerts that Alertmanager lists in the details of an event, as its
// own webhook does. It returns the names of the details that are covered: these, and the numbers of
// alerts, which Grafana sends as well.
func alertmanagerDetails(ctx context.Context, details any, address string, body *compose.Lines) []string {
	firing, resolved := payload.Get(details, "firing"), payload.Get(details, "resolved")
	if firing == nil && resolved == nil {
		return nil
	}
	counts := []string{"num_firing", "num_resolved"}
	alerts, _ := firing.([]any)
	more, _ := resolved.([]any)
	if alerts = append(alerts, more...); len(alerts) == 0 {
		return counts
	}
	alertmanager, err := source.Builtin("alertmanager")
	if err != nil {
		return counts
	}
	message, err := alertmanager.Read(ctx,
		&source.Request{Body: []byte(payload.Encode(map[string]any{"alerts": alerts, "externalURL": address}))})
	if err != nil {
		return counts
	}
	body.Add(message.Body)
	return append(counts, "firing", "resolved")
}

// newDedupKey returns a key for an alert that arrives without one. It is the same for each
// repetition with the same idempotency key, and otherwise random.
func newDedupKey(r *source.Request) string {
	var b [sha256.Size]byte
	_, _ = rand.Read(b[:]) // KeySettings are the options that a key takes over unchanged.
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		b = sha256.Sum256([]byte(key + "\x00" + string(r.Body)))
	}
	return hex.EncodeToString(b[:16])
}

// replyPagerDuty answers like PagerDuty. Clients show the errors.
func replyPagerDuty(o source.Outcome) source.Reply {
	if o.Error != "" {
		return pagerDutyError(o)
	}
	fields := map[string]any{"status": "success", "message": "Event processed", "dedup_key": o.Message.Echo["dedup_key"]}
	if o.Message.Untold != "" {
		fields["result"] = compose.Untold(o.Message)
	}
	return compose.JSONReply(http.StatusAccepted, fields)
}

func replyPagerDutyChange(o source.Outcome) source.Reply {
	if o.Error != "" {
		return pagerDutyError(o)
	}
	return compose.JSONReply(http.StatusAccepted, map[string]any{"status": "success", "message": "Change event processed"})
}

// pagerDutyError answers with an error. All errors of PagerDuty have the same body.
func pagerDutyError(o source.Outcome) source.Reply {
	status, message := "error", http.StatusText(o.Status)
	if o.Status == http.StatusBadRequest {
		status, message = "invalid event", "Event object is invalid"
	}
	return compose.JSONReply(o.Status, map[string]any{"status": status, "message": message, "errors": []string{o.Error}})
}
