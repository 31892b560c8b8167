package source

import (
	"encoding/base64"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	register(Format{
		Name:    "ntfy",
		Program: "ntfy",
		Doc:     "https://docs.ntfy.sh/publish/",
		Checked: "2.13.0",
		Tokens:  []TokenPlace{{Basic: true}, {Encoded: "auth"}},
		api:     &api{paths: []string{"*"}, read: readNtfy, reply: replyNtfy},
	})
}

// ntfyMessage is a message for ntfy. Its fields are in a JSON object, in headers or in
// the query string.
type ntfyMessage struct {
	request *Request
	json    any // nil for a message that is not JSON
}

// field returns the field with the first name in the JSON object, or else with any of
// the names in the headers or the query string. Apprise sends JSON with the priority
// in a header.
func (n ntfyMessage) field(names ...string) string {
	if value := text(get(n.json, names[0])); value != "" && value != "[]" {
		return value
	}
	for _, name := range names {
		for _, value := range []string{n.request.Header.Get("X-" + name), n.header(name), n.request.Query.Get("x-" + name), n.request.Query.Get(name)} {
			if value = strings.TrimSpace(decodeWords(value)); value != "" {
				return value
			}
		}
	}
	return ""
}

// header returns a header. It returns "" for the header Priority of HTTP (RFC 9218),
// which browsers send.
func (n ntfyMessage) header(name string) string {
	value := n.request.Header.Get(name)
	if name == "priority" && httpPriority.MatchString(value) {
		return ""
	}
	return value
}

var httpPriority = lazyregexp.New(`^u=\d(,\s*(i|\d))?$`)

// decodeWords decodes the encoded words of RFC 2047.
func decodeWords(s string) string {
	if d, err := new(mime.WordDecoder).DecodeHeader(s); err == nil {
		s = d
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func readNtfy(r *Request) (*Message, error) {
	n := ntfyMessage{request: r}
	if r.Path == "" {
		data, err := decodeJSON(r.Body)
		if _, ok := data.(map[string]any); err != nil || !ok {
			return nil, errorf(http.StatusBadRequest, "a message for ntfy is a JSON object at this address, or text at the address of a topic, such as …/ntfy/alerts")
		}
		n.json = data
	}
	m := &Message{Title: n.field("title", "t"), Topic: r.Path}
	if m.Topic == "" {
		m.Topic = n.field("topic")
	}
	priority := n.field("priority", "prio", "p")
	if priority != "" {
		t, known := notifier.TypeOfPriority(priority)
		m.Type = string(t)
		if !known {
			m.Warnings = append(m.Warnings, "ntfy has no such priority, so the message has the type info")
		}
	}
	if isTrue(n.field("markdown", "md")) || strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/markdown") {
		m.Format = "markdown"
	}
	m.Tags = validTags(n.tags())
	message := strings.ReplaceAll(n.field("message", "m"), `\n`, "\n")
	attach, filename := n.field("attach", "a"), n.field("filename", "file", "f")
	var body lines
	switch {
	case n.json != nil:
		body.add(text(get(n.json, "message")))
	case attach == "" && (filename != "" || message != "" && len(r.Body) > 0 || !utf8.Valid(r.Body)):
		body.add(message)
		if len(r.Body) > 0 {
			m.File = path.Base("/" + filename)
			if m.File == "/" {
				m.File = "attachment"
			}
		}
	case message != "":
		body.add(message)
	default:
		body.add(string(r.Body))
	}
	if click := n.field("click"); isAddress(click) {
		body.add(click)
	}
	if attach != "" {
		if !isAddress(attach) {
			return nil, errorf(http.StatusBadRequest, "attach must be an address that begins with http:// or https://")
		}
		m.Attach = []string{attach}
	}
	for _, ignored := range [][]string{{"actions", "action"}, {"delay", "at", "in"}, {"email", "e-mail", "mail", "e"}, {"call"}} {
		if value := n.field(ignored...); value != "" && value != "[]" {
			m.Warnings = append(m.Warnings, "ntfy's "+ignored[0]+" has no effect here")
		}
	}
	m.Body = body.String()
	if m.Body == "" && m.File == "" && len(m.Attach) == 0 && m.Title == "" {
		m.Body = "triggered" // as ntfy does
	}
	return m.check("ntfy", r)
}

// tags returns the tags, separated by commas.
func (n ntfyMessage) tags() string {
	if tags, ok := get(n.json, "tags").([]any); ok {
		var out []string
		for _, t := range tags[:min(len(tags), maxTags)] {
			out = append(out, text(t))
		}
		return strings.Join(out, ",")
	}
	return n.field("tags", "tag", "ta")
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes":
		return true
	}
	return false
}

func replyNtfy(o Outcome) Reply {
	if o.Error != "" {
		return jsonReply(o.Status, map[string]any{"code": o.Status * 100, "http": o.Status, "error": o.Error})
	}
	out := map[string]any{"id": ntfyID(o), "time": o.Time.Unix(), "expires": o.Time.Add(12 * time.Hour).Unix(), "event": "message", "topic": o.Message.Topic, "message": o.Message.Body}
	if len(o.Message.Warnings) > 0 {
		out["warnings"] = o.Message.Warnings
	}
	if o.Message.Title != "" {
		out["title"] = o.Message.Title
	}
	return jsonReply(http.StatusOK, out)
}

// ntfyID returns an ID of 12 characters, as ntfy does.
func ntfyID(o Outcome) string {
	id := o.ID
	if id == "" {
		id = base64.RawURLEncoding.EncodeToString([]byte(o.Time.Format(time.RFC3339Nano)))
	}
	return (strings.NewReplacer("-", "", "_", "").Replace(id) + "000000000000")[:12]
}
