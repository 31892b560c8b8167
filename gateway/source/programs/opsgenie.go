package programs

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	source.Register(source.Format{
		Name:    "opsgenie",
		Program: "Opsgenie",
		Doc:     "https://docs.opsgenie.com/docs/alert-api",
		Checked: "Alert API v2",
		Has: []string{
			"message", "alias|responders|visibleTo|entity|priority=P1|priority=P2|priority=P3|priority=P4|priority=P5",
			"description|source|details|tags?", "alias?",
		},
		Reads:  []string{"gotify"}, // Opsgenie needs no field but message
		Tokens: []source.TokenPlace{{Scheme: "GenieKey"}},
		API: &source.API{
			Clean:     opsgeniePath,
			Endpoints: opsgenieEndpoints(),
			Images:    true,
			Alerts:    true,
		},
	})
}

// opsgeniePath returns a path below the alerts. Some clients add it to the address of the API, and
// others to the address of the alerts.
func opsgeniePath(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "v2/alerts"), "/")
}

// opsgenieAction is what a client can do with an alert.
type opsgenieAction struct {
	methods []string
	name    string // the last segment of the path; "" for the alert itself
	action  string // as a request's status names it

	// read makes the message from the body. nil means that the gateway cannot do the action, and
	// the answer says so.
	read func(m *source.Message, data any, text *opsgenieText) error
}

// opsgenieText is the text of a message about an action on an alert: "STATE: ALIAS", then the
// lines.
type opsgenieText struct {
	state string
	compose.Lines
}

var (
	patchMethods  = []string{http.MethodPost, http.MethodPut, http.MethodPatch}
	deleteMethods = []string{http.MethodDelete}
)

// opsgenieActions are the actions on alerts. Properties that only Opsgenie stores, such as tags,
// cannot be changed here.
var opsgenieActions = []opsgenieAction{
	{nil, "close", "Close", readOpsgenieState("Closed", notifier.Success)},
	{nil, "acknowledge", "Acknowledge", readOpsgenieAcknowledge},
	{nil, "unacknowledge", "UnAcknowledge", readOpsgenieUnacknowledge},
	{nil, "notes", "AddNote", readOpsgenieField("Note", "note", "")},
	{nil, "snooze", "Snooze", readOpsgenieField("Snoozed", "endTime", "Until ")},
	{nil, "assign", "Assign", readOpsgenieName("Assigned", notifier.Info, "owner")},
	{nil, "escalate", "Escalate", readOpsgenieName("Escalated", notifier.Warning, "escalation")},
	{nil, "responders", "AddResponder", readOpsgenieName("Responder added", notifier.Info, "responder")},
	{nil, "teams", "AddTeam", readOpsgenieName("Team added", notifier.Info, "team")},
	{patchMethods, "priority", "UpdatePriority", readOpsgeniePriority},
	{patchMethods, "message", "UpdateMessage", nil},
	{patchMethods, "description", "UpdateDescription", nil},
	{append(patchMethods, http.MethodDelete), "tags", "UpdateTags", nil},
	{append(patchMethods, http.MethodDelete), "details", "UpdateDetails", nil},
	{deleteMethods, "", "Delete", readOpsgenieState("Deleted", notifier.Success)}, // any other path
}

// opsgenieEndpoints returns the endpoints of the alert API, and the ping of its heartbeats.
func opsgenieEndpoints() []source.Endpoint {
	return []source.Endpoint{
		{Paths: []string{""}, Read: readOpsgenieAlert, Reply: replyOpsgenie("Create")},
		{Methods: compose.GetMethods, Paths: []string{"requests/*"}, Read: readOpsgenieStatus, Reply: replyOpsgenieStatus},
		{Methods: compose.AnyMethod, Paths: []string{"", "**"}, Beat: opsgenieBeat, Read: readOpsgenieOther, Reply: replyOpsgenieOther},
	}
}

// opsgenieSegments returns the segments of a path below the alerts. An encoded segment may have
// slashes.
func opsgenieSegments(r *source.Request) []string {
	if r.RawPath == "" {
		return strings.Split(opsgeniePath(r.Path), "/")
	}
	path := strings.TrimLeft(opsgeniePath(strings.Trim(r.RawPath, "/")), "/")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if decoded, err := url.PathUnescape(s); err == nil {
			segments[i] = decoded
		}
	}
	return segments
}

// opsgenieActionOf returns the action of a request and the alias of its alert. The action is nil if
// the gateway does not have it. The alias is the same as in the request that opened the alert: it
// may have slashes, encoded or not.
func opsgenieActionOf(r *source.Request) (*opsgenieAction, string) {
	segments := opsgenieSegments(r)
	last := len(segments) - 1
	for i := range opsgenieActions {
		a, methods := &opsgenieActions[i], opsgenieActions[i].methods
		if methods == nil {
			methods = []string{http.MethodPost, http.MethodPut}
		}
		if !slices.Contains(methods, r.Method) {
			continue
		}
		if a.name == "" {
			return a, strings.Join(segments, "/")
		}
		if last > 0 && segments[last] == a.name {
			return a, strings.Join(segments[:last], "/")
		}
	}
	return nil, ""
}

// origins whose pages may send from a visitor's browser, or [AnyOrigin]
func opsgenieHeartbeat(r *source.Request) (name, what string, ok bool) {
	segments := opsgenieSegments(r)
	if len(segments) < 2 || segments[0] != "v2" || segments[1] != "heartbeats" {
		return "", "", false
	}
	if last := len(segments) - 1; last > 2 {
		return strings.Join(segments[2:last], "/"), segments[last], true
	}
	return "", "", true
}

// opsgenieBeat returns the name of the heartbeat that a request pings, or "".
func opsgenieBeat(r *source.Request) string {
	if name, what, ok := opsgenieHeartbeat(r); ok && what == "ping" && r.Method != http.MethodDelete {
		return name
	}
	return ""
}

// readOpsgenieOther reads a request about an existing alert, or the ping of a heartbeat.
func readOpsgenieOther(_ context.Context, r *source.Request) (*source.Message, error) {
	if name := opsgenieBeat(r); name != "" {
		return &source.Message{Beat: name}, nil
	}
	if _, _, ok := opsgenieHeartbeat(r); ok {
		return nil, source.Errorf(http.StatusNotFound,
			"the gateway does not have this address of Opsgenie; a heartbeat is a beat that the key expects: add expect <name> every <duration> "+
				"to the key, and ping …/v2/heartbeats/{name}/ping")
	}
	if a, alias := opsgenieActionOf(r); a != nil {
		return readOpsgenieAction(r, a, alias)
	}
	return nil, source.Errorf(http.StatusNotFound,
		"the gateway does not have this address of Opsgenie, because it keeps no alerts; it takes POST …/v2/alerts and "+
			"POST …/v2/alerts/{alias}/close, acknowledge and notes")
}

// replyOpsgenieOther answers a request that readOpsgenieOther has read.
func replyOpsgenieOther(o source.Outcome) source.Reply {
	if o.Error == "" && o.Message.Beat != "" {
		return opsgenieReply(o, http.StatusAccepted, opsgenieRequest{"Ping", "", o.Time}, map[string]any{"result": "PONG - Heartbeat received"})
	}
	name := ""
	if a, _ := opsgenieActionOf(o.Request); a != nil {
		name = a.action
	}
	return replyOpsgenie(name)(o)
}

// readOpsgenieAlert reads a new alert.
func readOpsgenieAlert(_ context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("Opsgenie")
	if err != nil {
		return nil, err
	}
	field := func(name string) string { return strings.TrimSpace(payload.Text(payload.Get(data, name))) }
	if field("message") == "" {
		return nil, source.Errorf(http.StatusBadRequest, "the field message is missing")
	}
	m := &source.Message{Incident: cmp.Or(field("alias"), newDedupKey(r)), Priority: strings.ToUpper(field("priority"))}
	setOpsgeniePriority(m, field("priority"), notifier.Failure)
	compose.SetOver(m, field("message"))
	if tags, ok := payload.Get(data, "tags").([]any); ok {
		var names []string
		for _, tag := range tags[:min(len(tags), source.MaxTags)] {
			names = append(names, payload.Text(tag))
		}
		m.Tags = source.ValidTags(strings.Join(names, ","))
	}
	var body compose.Lines
	compose.SetHeadline(m, field("message"), &body)
	description := strings.TrimPrefix(field("description"), m.Title+"\n") // Grafana repeats the title in it
	body.Add(description)
	body.Add(markup.TruncateBytes(field("note"), compose.MaxDetail))
	details := payload.Get(data, "details")
	body.Details(details, "image_urls")
	for _, f := range []struct{ label, value string }{
		{"Entity", field("entity")},
		{"Source", field("source")},
		{"User", field("user")},
		{"Responders", opsgenieNames(payload.Get(data, "responders"))},
	} {
		if !body.Has(f.value) && !strings.Contains(m.Title, f.value) {
			body.Origin(f.label, f.value)
		}
	}
	for address := range strings.SplitSeq(payload.Text(payload.Get(details, "image_urls")), ",") { // Grafana sends these
		compose.AddImage(m, strings.TrimSpace(address))
	}
	m.Body = body.String()
	compose.Echo(m, opsgenieAlias, m.Incident)
	return compose.CheckContent(m, "Opsgenie", r)
}

// setOpsgeniePriority sets the type for a priority from P1 to P5, or t for an alert without one.
func setOpsgeniePriority(m *source.Message, priority string, t notifier.Type) {
	switch strings.ToUpper(priority) {
	case "":
	case "P1", "P2":
		t = notifier.Failure
	case "P3", "P4":
		t = notifier.Warning
	case "P5":
		t = notifier.Info
	default:
		m.Warnings = append(m.Warnings, "Opsgenie has no such priority; write P1 to P5")
	}
	m.Type = string(t)
}

// opsgenieNames returns the names in an object with a name, a user name or an ID, or in a list of
// such objects.
func opsgenieNames(v any) string {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	var names []string
	for _, v := range all[:min(len(all), compose.MaxFacts)] {
		name := payload.Text(payload.Or(payload.Or(payload.Get(v, "name"), payload.Get(v, "username")), payload.Get(v, "id")))
		if name = strings.TrimSpace(markup.TruncateBytes(name, compose.MaxDetail)); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// opsgenieAlias is the name of the alias among the values that answers repeat.
const opsgenieAlias = "alias"

// readOpsgenieAction reads an action on an alert.
func readOpsgenieAction(r *source.Request, a *opsgenieAction, alias string) (*source.Message, error) {
	if kind := r.Query.Get("identifierType"); kind == "tiny" {
		return nil, source.Errorf(http.StatusBadRequest, "the gateway gives alerts no tiny ID; use the alias")
	}
	if a.read == nil {
		m := &source.Message{Skip: true}
		compose.Echo(m, opsgenieAlias, alias)
		return m, nil
	}
	var data any
	if len(r.Body) > 0 || len(r.Form) > 0 {
		var err error
		if data, err = r.JSONPayload("Opsgenie"); err != nil {
			return nil, err
		}
		r.Payload = nil // the address identifies the format
	}
	m := &source.Message{Incident: alias}
	var t opsgenieText
	if err := a.read(m, data, &t); err != nil {
		return nil, err
	}
	var body compose.Lines
	compose.SetHeadline(m, t.state+": "+compose.NameAlert(m, r), &body)
	body.Add(t.String())
	if a.name != "notes" {
		body.Add(markup.TruncateBytes(payload.Text(payload.Get(data, "note")), compose.MaxDetail))
	}
	body.Origin("By", cmp.Or(payload.Text(payload.Get(data, "user")), payload.Text(payload.Get(data, "source"))))
	m.Body = body.String()
	compose.Echo(m, opsgenieAlias, alias)
	return compose.CheckContent(m, "Opsgenie", r)
}

func readOpsgenieUnacknowledge(m *source.Message, _ any, text *opsgenieText) error {
	m.Type, m.Unacknowledged, text.state = string(notifier.Info), true, "No longer acknowledged"
	return nil
}

// readOpsgenieState returns a function that reads a change of an alert's state.
func readOpsgenieState(state string, t notifier.Type) func(*source.Message, any, *opsgenieText) error {
	return func(m *source.Message, _ any, text *opsgenieText) error {
		m.Type, text.state = string(t), state
		return nil
	}
}

func readOpsgenieAcknowledge(m *source.Message, _ any, text *opsgenieText) error {
	m.Type, m.Acknowledged, text.state = string(notifier.Info), true, "Acknowledged"
	return nil
}

// readOpsgenieField returns a function that reads an action with a text in a field.
func readOpsgenieField(state, field, prefix string) func(*source.Message, any, *opsgenieText) error {
	return func(m *source.Message, data any, t *opsgenieText) error {
		value := strings.TrimSpace(payload.Text(payload.Get(data, field)))
		if value == "" {
			return source.Errorf(http.StatusBadRequest, "the field %s is missing", field)
		}
		m.Type, t.state = string(notifier.Info), state
		t.Add(prefix + value)
		return nil
	}
}

// readOpsgenieName returns a function that reads an action with somebody's name in a
// field.
func readOpsgenieName(state string, t notifier.Type, field string) func(*source.Message, any, *opsgenieText) error {
	return func(m *source.Message, data any, text *opsgenieText) error {
		name := opsgenieNames(payload.Get(data, field))
		if name == "" {
			return source.Errorf(http.StatusBadRequest, "the field %s is missing", field)
		}
		m.Type, text.state = string(t), state
		text.Add(name)
		return nil
	}
}

func readOpsgeniePriority(m *source.Message, data any, t *opsgenieText) error {
	priority := strings.TrimSpace(payload.Text(payload.Get(data, "priority")))
	if priority == "" {
		return source.Errorf(http.StatusBadRequest, "the field priority is missing")
	}
	setOpsgeniePriority(m, priority, notifier.Info)
	t.state = "Priority " + markup.TruncateBytes(priority, 40)
	return nil
}

// replyOpsgenie returns a function that answers a request for an action. The ID of the request
// holds the action, because clients ask for its outcome.
func replyOpsgenie(action string) func(o source.Outcome) source.Reply {
	return func(o source.Outcome) source.Reply {
		if o.Error != "" {
			return opsgenieReply(o, o.Status, opsgenieRequest{"Error", "", o.Time}, map[string]any{"message": o.Error})
		}
		done, result := action, "Request will be processed"
		switch {
		case o.Message.Skip:
			result = opsgenieNothing
		case o.Message.Untold != "":
			done, result = action+opsgenieUntold, compose.Untold(o.Message)
		}
		return opsgenieReply(o, http.StatusAccepted, opsgenieRequest{done, payload.Text(o.Message.Echo[opsgenieAlias]), o.Time},
			map[string]any{"result": result})
	}
}

// opsgenieNothing is the result of an action that sends nothing.
const opsgenieNothing = "Nothing was sent: the gateway keeps no alert that it could change"

// opsgenieUntold ends the action in the ID of a request of which nobody was told.
const opsgenieUntold = "Untold"

// opsgenieReply answers with the fields common to all answers of Opsgenie.
func opsgenieReply(o source.Outcome, status int, q opsgenieRequest, fields map[string]any) source.Reply {
	fields["took"], fields["requestId"] = o.Took.Seconds(), q.id()
	return compose.JSONReply(status, fields)
}

// settings of every saved key
type opsgenieRequest struct {
	action, alias string
	time          time.Time
}

// id returns the ID, which holds everything about the request, because the gateway does not store
// it.
func (q opsgenieRequest) id() string {
	return fmt.Sprintf("%s-%d-%s", q.action, q.time.UnixMilli(), base64.RawURLEncoding.EncodeToString([]byte(q.alias)))
}

// parseOpsgenieRequest parses an ID.
func parseOpsgenieRequest(id string) (q opsgenieRequest, ok bool) {
	action, rest, _ := strings.Cut(id, "-")
	millis, alias, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(millis, 10, 64)
	name, err2 := base64.RawURLEncoding.DecodeString(alias)
	if err != nil || err2 != nil || len(name) == 0 {
		return q, false
	}
	return opsgenieRequest{action, strings.ToValidUTF8(string(name), "\uFFFD"), time.UnixMilli(n)}, true
}

// opsgenieStatus returns the request whose outcome r asks for.
func opsgenieStatus(r *source.Request) (opsgenieRequest, bool) {
	return parseOpsgenieRequest(strings.TrimPrefix(opsgeniePath(r.Path), "requests/"))
}

func readOpsgenieStatus(_ context.Context, r *source.Request) (*source.Message, error) {
	if _, ok := opsgenieStatus(r); !ok {
		return nil, source.Errorf(http.StatusNotFound, "there is no such request; the ID is the requestId of an answer")
	}
	return &source.Message{Skip: true}, nil
}

// replyOpsgenieStatus answers with the outcome of a request. A request with an ID was accepted: its
// message, if its action sends one, was or will be delivered.
func replyOpsgenieStatus(o source.Outcome) source.Reply {
	if o.Error != "" {
		return replyOpsgenie("")(o)
	}
	q, _ := opsgenieStatus(o.Request)
	action, untold := strings.CutSuffix(q.action, opsgenieUntold)
	q.action = action
	status, sent := q.action+" was sent", !slices.ContainsFunc(opsgenieActions,
		func(a opsgenieAction) bool { return a.action == q.action && a.read == nil })
	if !sent {
		status = opsgenieNothing
	} else if untold {
		status = "Nobody was told; the answer to the request has said why"
	}
	return opsgenieReply(o, http.StatusOK, opsgenieRequest{"Status", q.alias, o.Time}, map[string]any{"data": map[string]any{
		"success": sent, "isSuccess": sent, "action": q.action, "status": status, "processedAt": q.time.UTC().Format(time.RFC3339Nano),
		"alertId": q.alias, "alias": q.alias, "integrationId": "",
	}})
}
