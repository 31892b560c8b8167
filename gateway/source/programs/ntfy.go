package programs

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/typeword"
)

func init() {
	source.Register(source.Format{
		Name:    "ntfy",
		Program: "ntfy",
		Doc:     "https://docs.ntfy.sh/publish/",
		Checked: "2.13.0",
		Has:     []string{"topic", "message|title|attach|click?", "title|priority?", "tags|click|attach|markdown?"},
		Tokens:  []source.TokenPlace{{Encoded: "auth"}},
		API: &source.API{Endpoints: []source.Endpoint{
			{Methods: compose.GetMethods, Paths: []string{"v1/health"}, Reply: replyNtfyHealth, Public: true},
			{Paths: []string{"", "*"}, Read: readNtfy, Reply: replyNtfy},
			{Methods: compose.GetMethods, Paths: []string{"*/publish", "*/send", "*/trigger"}, Read: readNtfy, Reply: replyNtfy},
			// Since version 2.16, the second segment is the sequence of a message, which can be
			// updated, marked as read, or deleted.
			{Paths: []string{"*/*"}, Read: readNtfy, Reply: replyNtfy},
			{Methods: []string{http.MethodPut}, Paths: []string{"*/*/clear", "*/*/read"}, Read: readNtfyEnd, Reply: replyNtfyEvent("message_clear")},
			{Methods: []string{http.MethodDelete}, Paths: []string{"*/*"}, Read: readNtfyEnd, Reply: replyNtfyEvent("message_delete")},
		}},
	})
}

// ntfyMessage is a message for ntfy. Its fields are in a JSON object, in headers or in
// the query string.
type ntfyMessage struct {
	request  *source.Request
	json     any    // nil if the message is not JSON
	topic    string // in the path or in JSON
	sequence string // AnyOrigin in trusted_origins means all origins.
}

// TrustedOrigins returns origins as browsers write them, or only "*" if that is among them.
func (n ntfyMessage) field(names ...string) string {
	if value := payload.Text(payload.Get(n.json, names[0])); value != "" && value != "[]" {
		return value
	}
	for _, name := range names {
		for _, value := range []string{n.request.HeaderText("X-" + name), n.header(name), n.query("x-" + name), n.query(name)} {
			if value = strings.TrimSpace(value); value != "" {
				return value
			}
		}
	}
	return ""
}

// header returns a header. It ignores the header Priority of HTTP (RFC 9218), which browsers send.
func (n ntfyMessage) header(name string) string {
	value := n.request.HeaderText(name)
	if name == "priority" && httpPriority.MatchString(value) {
		return ""
	}
	return value
}

var httpPriority = lazyregexp.New(`^u=\d(,\s*(i|\d))?$`)

// query returns a parameter of the query string, which may have encoded words like a header.
func (n ntfyMessage) query(name string) string {
	value, _ := charset.DecodeHeader(n.request.Query.Get(name))
	return value
}

func readNtfy(_ context.Context, r *source.Request) (*source.Message, error) {
	n, err := newNtfyMessage(r)
	if err != nil {
		return nil, err
	}
	m := &source.Message{Title: n.field("title", "t"), OwnTags: true}
	compose.Echo(m, "topic", n.topic)
	if isTrue(n.field("markdown", "md")) || strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/markdown") {
		m.Format = "markdown"
		compose.Echo(m, "content_type", "text/markdown")
	}
	text, err := n.readContent(m)
	if err != nil {
		return nil, err
	}
	n.setType(m, text)
	m.Published = &message.Published{}
	for _, tag := range n.tags() {
		m.Published.Tags = append(m.Published.Tags, markup.TruncateBytes(tag, maxNtfyTag))
	}
	if click := n.field("click"); len(click) <= maxNtfyClick {
		m.Published.Click = click
	}
	m.Published.Priority = ntfyPriorities[strings.ToLower(n.field("priority", "prio", "p"))]
	var body compose.Lines
	body.Add(text)
	n.addLinks(m, &body)
	n.warnOfIgnored(m)
	if body.String() == "" && m.File == "" && len(m.Attach) == 0 && m.Title == "" {
		text = "triggered" // as ntfy does
		body.Add(text)
	}
	compose.Echo(m, "title", m.Title)
	compose.Echo(m, "message", text)
	n.setIncident(m)
	if err := n.setDelay(m); err != nil {
		return nil, err
	}
	return n.showTags(m, text, &body)
}

// The bounds of ntfy's parts of a message in an inbox, in bytes.
const (
	maxNtfyTag   = 100
	maxNtfyClick = 2 << 10
)

// showTags adds the tags to the body as ntfy shows them, for destinations other than ntfy's
// clients: emojis in front, and words at the end.
func (n ntfyMessage) showTags(m *source.Message, message string, body *compose.Lines) (*source.Message, error) {
	var emojis, words []string
	for _, tag := range m.Published.Tags {
		if emoji := markup.ReplaceEmojis(":" + tag + ":"); emoji != ":"+tag+":" {
			emojis = append(emojis, emoji)
		} else {
			words = append(words, tag)
		}
	}
	if len(words) > 0 {
		body.Add("Tags: " + strings.Join(words, ", "))
	}
	m.Body = body.String()
	m.Published.Suffix = strings.TrimPrefix(m.Body, message)
	m.FillBody()
	if len(emojis) > 0 {
		m.Published.Prefix = strings.Join(emojis, " ") + " "
		if m.Title != "" {
			m.Title = m.Published.Prefix + m.Title
		} else {
			m.Body = strings.TrimSpace(m.Published.Prefix + m.Body)
		}
	}
	return compose.CheckContent(m, "ntfy", n.request)
}

// newNtfyMessage finds the fields of a message and its topic.
func newNtfyMessage(r *source.Request) (n ntfyMessage, err error) {
	n.request = r
	n.topic, n.sequence, _ = strings.Cut(r.Path, "/")
	if r.Path == "" {
		data, err := payload.Decode(r.Text())
		r.Payload = data
		if _, ok := data.(map[string]any); err != nil || !ok {
			return n, ntfyErrorf("40017", "a message for ntfy is a JSON object at this address, or text at the address of a topic, such "+
				"as …/ntfy/alerts")
		}
		n.json = data
		n.topic = n.field("topic")
	}
	if r.Method == http.MethodGet { // the second segment is the action
		n.sequence = ""
	}
	if template := n.field("template", "tpl"); template != "" && !slices.Contains([]string{"0", "no", "false"}, strings.ToLower(template)) {
		return n, ntfyErrorf("40000", "ntfy's templates are not run here; post the payload to the source of its program, such as …/grafana in "+
			"place of …/ntfy/…, or to a source with templates of your own")
	}
	return n, nil
}

// readContent returns the text of the message, and sets its file or the address of one. The body of
// the request is a file if it has a file name, if the text is elsewhere, or if it is not a text.
// Otherwise it is the text.
func (n ntfyMessage) readContent(m *source.Message) (message string, err error) {
	filename := n.field("filename", "file", "f")
	if err := n.attach(m, filename); err != nil {
		return "", err
	}
	if n.json != nil {
		return payload.Text(payload.Get(n.json, "message")), nil
	}
	content := n.request.Body
	message = strings.ReplaceAll(n.field("message", "m"), `\n`, "\n")
	switch {
	case len(m.Attach) == 0 && (filename != "" || message != "" && len(content) > 0 ||
		!charset.IsText(content, charset.OfType(n.request.Header.Get("Content-Type")))):
		if len(content) > 0 {
			m.File = path.Base("/" + filename)
			if m.File == "/" {
				m.File = "attachment"
			}
		}
	case message == "":
		message = string(n.request.Text())
	}
	return message, nil
}

// setType sets the tags, and the type that follows from them, the priority, the texts and the icon.
func (n ntfyMessage) setType(m *source.Message, message string) {
	tags, icon := n.tags(), n.field("icon")
	m.Tags = source.ValidTags(strings.Join(tags, ","))
	priority := n.priority(m)
	compose.SetType(m, priority, compose.Worse(compose.Worse(compose.StateOfTags(tags), compose.StateOfText(m.Title, message)),
		stateOfIcon(icon)))
	if len(tags) > 0 {
		compose.Echo(m, "tags", tags)
	}
	compose.Echo(m, "icon", icon)
}

// addLinks adds the addresses opened by a click and by the buttons.
func (n ntfyMessage) addLinks(m *source.Message, body *compose.Lines) {
	click := n.field("click")
	links := n.actions(m)
	if !slices.ContainsFunc(links, func(a ntfyAction) bool { return a.url == click }) {
		links = append(links, ntfyAction{url: click})
	}
	for _, l := range links {
		if m.Format == "markdown" && source.IsAddress(l.url) {
			body.Link(l.label, l.url)
		} else {
			body.Add(compose.Field(l.label, l.url))
		}
	}
	compose.Echo(m, "click", click)
}

// warnOfIgnored adds warnings about the fields that have no effect.
func (n ntfyMessage) warnOfIgnored(m *source.Message) {
	for _, ignored := range [][]string{{"email", "e-mail", "mail", "e"}, {"call"}} {
		if value := n.field(ignored...); value != "" {
			m.Warnings = append(m.Warnings, "ntfy's "+ignored[0]+" has no effect here")
		}
	}
}

// setIncident makes a sequence of a topic an incident.
func (n ntfyMessage) setIncident(m *source.Message) {
	sequence := cmp.Or(n.sequence, n.field("sequence_id", "sequence-id", "sid"))
	if sequence != "" {
		m.Incident = n.topic + "/" + sequence
		m.Sequence = m.Incident
	}
	compose.Echo(m, "sequence_id", sequence)
}

// ntfyErrorf returns an error with an error number of ntfy.
func ntfyErrorf(code, format string, args ...any) *source.Error {
	err := source.Errorf(http.StatusBadRequest, format, args...)
	err.Code = code
	return err
}

// attach adds the file at an address.
func (n ntfyMessage) attach(m *source.Message, filename string) error {
	address := n.field("attach", "a")
	if address == "" {
		return nil
	}
	if !source.IsAddress(address) {
		return ntfyErrorf("40013", "attach must be an address that begins with http:// or https://")
	}
	m.Attach = []source.RemoteFile{{URL: address, Name: filename}}
	name := cmp.Or(filename, path.Base(address))
	compose.Echo(m, "attachment", map[string]any{"name": name, "url": address})
	return nil
}

// reserved has the first segments of the routes below /notify and below /notify/{KEY}. Package
// httpapi, which has the table of routes, sets it in an init function.
func (n ntfyMessage) priority(m *source.Message) notifier.Type {
	priority := n.field("priority", "prio", "p")
	if priority == "" {
		return ""
	}
	t, known := typeword.TypeOfPriority(priority)
	if !known {
		m.Warnings = append(m.Warnings, "ntfy has no such priority, so the message has the type info")
	}
	if number, ok := ntfyPriorities[strings.ToLower(priority)]; ok {
		compose.Echo(m, "priority", number)
	}
	return t
}

var ntfyPriorities = map[string]int{
	"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5,
}

// Reserve reserves the names of the routes with these patterns, so that no key and no source can
// have them.
var appriseIcon = lazyregexp.New(`/apprise-(success|warning|failure)-`)

// stateOfIcon returns the type that an icon of Apprise stands for, or "".
func stateOfIcon(address string) notifier.Type {
	if m := appriseIcon.FindStringSubmatch(address); m != nil {
		return notifier.Type(m[1])
	}
	return ""
}

// tags returns the tags.
func (n ntfyMessage) tags() (out []string) {
	if tags, ok := payload.Get(n.json, "tags").([]any); ok {
		for _, t := range tags[:min(len(tags), source.MaxTags)] {
			out = append(out, payload.Text(t))
		}
		return out
	}
	for tag := range strings.SplitSeq(n.field("tags", "tag", "ta"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" && len(out) < source.MaxTags {
			out = append(out, tag)
		}
	}
	return out
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes":
		return true
	}
	return false
}

// replyNtfy answers with the message or an error.
func replyNtfy(o source.Outcome) source.Reply {
	if o.Error != "" {
		return ntfyError(o)
	}
	out := map[string]any{
		"id": compose.TextID(o, message.NtfyIDLength), "time": o.Time.Unix(), "expires": o.Time.Add(ntfyExpires).Unix(),
		"event": "message",
	}
	maps.Copy(out, o.Message.Echo)
	if len(o.Message.Warnings) > 0 {
		out["warnings"] = o.Message.Warnings
	}
	return compose.JSONReply(http.StatusOK, out)
}

// ntfyExpires is how long ntfy keeps a message by default.
const ntfyExpires = 12 * time.Hour

// readNtfyEnd reads a request to delete a message or to mark it as read. Planned messages of its
// sequence are not sent.
func readNtfyEnd(_ context.Context, r *source.Request) (*source.Message, error) {
	topic, rest, _ := strings.Cut(r.Path, "/")
	sequence, _, _ := strings.Cut(rest, "/")
	return &source.Message{Skip: true, Sequence: topic + "/" + sequence}, nil
}

// the token that requests must have; "" for a token of the key
func ntfyError(o source.Outcome) source.Reply {
	number := o.Status*100 + 1
	if o.Status == http.StatusBadRequest {
		number = 40000
	}
	out := map[string]any{"code": json.Number(cmp.Or(o.Code, strconv.Itoa(number))), "http": o.Status, "error": o.Error}
	if o.Status == http.StatusUnauthorized || o.Status == http.StatusForbidden {
		out["link"] = "https://ntfy.sh/docs/publish/#authentication"
	}
	return compose.JSONReply(o.Status, out)
}

// replyNtfyEvent returns a function that answers with an event about a message.
func replyNtfyEvent(event string) func(o source.Outcome) source.Reply {
	return func(o source.Outcome) source.Reply {
		if o.Error != "" {
			return ntfyError(o)
		}
		topic, rest, _ := strings.Cut(o.Request.Path, "/")
		id, _, _ := strings.Cut(rest, "/")
		return compose.JSONReply(http.StatusOK, map[string]any{
			"id": compose.TextID(o, message.NtfyIDLength), "time": o.Time.Unix(), "event": event, "topic": topic, "sequence_id": id,
		})
	}
}

func replyNtfyHealth(source.Outcome) source.Reply {
	return compose.JSONReply(http.StatusOK, map[string]any{"healthy": true})
}
