package slack

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The Web API of Slack is for bots, with methods such as chat.postMessage below /api/.
// See https://docs.slack.dev/apis/web-api/.

// webMethod is a method of the Web API.
type webMethod struct {
	// read returns the message of a request. If it is nil, a request sends nothing.
	read func(r *source.Request, data map[string]any) (*source.Message, error)

	// answer returns the fields of the answer to a successful request.
	answer func(o source.Outcome) map[string]any
}

// webMethods are the methods that programs need to send messages.
var webMethods = map[string]webMethod{
	"api.test":                     {nil, slackNothing},
	"auth.test":                    {nil, slackAuth},
	"chat.postMessage":             {readMessage, slackPosted},
	"chat.postEphemeral":           {readMessage, slackPosted},
	"chat.meMessage":               {readMessage, slackPosted},
	"chat.update":                  {readUpdate, slackUpdated},
	"chat.delete":                  {nil, slackUpdated},
	"conversations.join":           {nil, slackNothing},
	"files.completeUploadExternal": {readUpload, slackUploaded},
	"files.getUploadURLExternal":   {readUploadURL, slackUploadURL},
	"files.upload":                 {readFile, slackFile},
	"reactions.add":                {nil, slackNothing},
	"reactions.remove":             {nil, slackNothing},
}

// methodFamilies are the first parts of the names of other methods.
var methodFamilies = []string{
	"api", "apps", "auth", "bots", "chat", "conversations", "files", "pins", "reactions", "team", "usergroups",
	"users", "views",
}

// webEndpoints returns the endpoints of the Web API, which accepts GET for all methods.
func webEndpoints() []source.Endpoint {
	methods := []string{http.MethodGet, http.MethodPost}
	var out []source.Endpoint
	for name, method := range webMethods {
		out = append(out, source.Endpoint{
			Methods: methods, Paths: []string{name, "api/" + name},
			Read: func(_ context.Context, r *source.Request) (*source.Message, error) { return readWeb(r, method) },
			Reply: func(o source.Outcome) source.Reply {
				if o.Error != "" {
					return webError(o)
				}
				answer := map[string]any{"ok": true}
				maps.Copy(answer, method.answer(o))
				if messages := webWarnings(o.Message); len(messages) > 0 {
					answer["response_metadata"] = map[string]any{"messages": messages}
				}
				return compose.JSONReply(http.StatusOK, answer)
			},
		})
	}
	return append(
		out,
		source.Endpoint{Paths: []string{"upload/v1/*", "api/upload/v1/*"}, Read: readUploaded, Reply: replyUploaded},
		source.Endpoint{Methods: compose.AnyMethod, Other: isMethod, Read: readUnknown, Reply: webError},
	)
}

// isMethod reports whether a path is a method of an API: it begins with api, or ends with a name
// such as chat.postMessage.
func isMethod(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	family, method, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ".")
	return first == "api" || slices.Contains(methodFamilies, family) && methodName.MatchString(method)
}

// methodName matches the part of a method's name after the family.
var methodName = lazyregexp.New(`^[A-Za-z]+(\.[A-Za-z]+)*$`)

// readWeb reads a request to the Web API: the fields of the query string, of a form or of a JSON
// object. Objects in a form are JSON.
func readWeb(r *source.Request, method webMethod) (*source.Message, error) {
	data := source.FormFields(r.Query)
	if len(r.Body) > 0 || len(r.Form) > 0 {
		body, err := r.JSONPayload("Slack")
		if err != nil {
			return nil, webErrorf("invalid_json", "%w", err)
		}
		r.Payload = nil // the method identifies the format
		object, _ := body.(map[string]any)
		maps.Copy(data, object)
	}
	for _, name := range []string{"attachments", "blocks", "files"} {
		s, ok := data[name].(string)
		if !ok {
			continue
		}
		if data[name] = nil; s == "" {
			continue
		}
		v, err := payload.Decode([]byte(s))
		if err != nil {
			return nil, webErrorf("invalid_arguments", "%s must be JSON: %w", name, err)
		}
		data[name] = v
	}
	m := &source.Message{Skip: true}
	if method.read != nil {
		var err error
		if m, err = method.read(r, data); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"channel", "text", "ts", "files", "filename", "title", "username"} {
		compose.Echo(m, name, data[name])
	}
	return m, nil
}

// webErrorf returns an error with a code of Slack.
func webErrorf(code, format string, args ...any) *source.Error {
	err := source.Errorf(http.StatusBadRequest, format, args...)
	err.Code = code
	return err
}

// errorCodes are the codes of errors by status. See
// https://docs.slack.dev/reference/methods/chat.postMessage#errors.
var errorCodes = map[int]string{
	http.StatusBadRequest:            "invalid_arguments",
	http.StatusUnauthorized:          "invalid_auth",
	http.StatusForbidden:             "restricted_action",
	http.StatusNotFound:              "channel_not_found",
	http.StatusMethodNotAllowed:      "invalid_post_type",
	http.StatusRequestTimeout:        "request_timeout",
	http.StatusRequestEntityTooLarge: "msg_too_long",
	http.StatusUnsupportedMediaType:  "invalid_post_type",
	http.StatusFailedDependency:      "fatal_error",
	http.StatusTooManyRequests:       "ratelimited",
	http.StatusServiceUnavailable:    "service_unavailable",
}

// webError answers with an error. Its status is 200, as Slack's is: clients such as Slack's SDK for
// Node repeat a request with any other status for half an hour. An error that may pass within that
// time keeps its status.
func webError(o source.Outcome) source.Reply {
	code, status := cmp.Or(o.Code, errorCodes[o.Status], "internal_error"), o.Status
	if o.Anonymous && o.Status == http.StatusUnauthorized {
		code = "not_authed"
	}
	if status < http.StatusInternalServerError && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		status = http.StatusOK
	}
	return compose.JSONReply(status, map[string]any{
		"ok": false, "error": code,
		"response_metadata": map[string]any{"messages": []string{"[ERROR] " + o.Error}},
	})
}

// webWarnings returns the warnings about a message in Slack's form, which clients log.
func webWarnings(m *source.Message) (messages []string) {
	for _, w := range m.Warnings {
		messages = append(messages, "[WARN] "+w)
	}
	return messages
}

// readUnknown refuses a method that the gateway does not have.
func readUnknown(context.Context, *source.Request) (*source.Message, error) {
	return nil, &source.Error{
		Status: http.StatusNotFound, Code: "unknown_method",
		Err: fmt.Errorf("the gateway does not have this method of Slack; it has %s", strings.Join(slices.Sorted(maps.Keys(webMethods)), ", ")),
	}
}

// readMessage reads a new message.
func readMessage(r *source.Request, data map[string]any) (*source.Message, error) {
	m, err := compose.CheckContent(slackMessage(data, markup.DialectSlack), "Slack", r)
	if err != nil {
		return nil, webErrorf("no_text", "%w", err)
	}
	return m, nil
}

// readUpdate reads the new text of a message, which is sent as a new message. Other changes, such
// as of buttons, are not sent.
func readUpdate(r *source.Request, data map[string]any) (*source.Message, error) {
	m, err := compose.CheckContent(slackMessage(data, markup.DialectSlack), "Slack", r)
	if err != nil {
		return &source.Message{Skip: true}, nil
	}
	compose.MarkEdited(m)
	return m, nil
}

// readUploadURL reads a request for an address to post a file to. Some clients send no token to the
// address, so it has a ticket.
func readUploadURL(_ *source.Request, data map[string]any) (*source.Message, error) {
	if payload.Text(data["filename"]) == "" {
		return nil, webErrorf("invalid_arguments", "filename is missing")
	}
	return &source.Message{Skip: true}, nil
}

// readUploaded reads a file, as a form or as the body. It is sent at once, because the gateway
// keeps nothing between requests. Its name is taken from the address: Slack's SDK for Node calls
// every file of a form "Untitled".
func readUploaded(_ context.Context, r *source.Request) (*source.Message, error) {
	if r.Files == 0 && len(r.Body) == 0 {
		return nil, source.Errorf(http.StatusBadRequest, "the request has no file")
	}
	name := path.Base("/" + r.Query.Get("filename"))
	if name != "/" {
		return &source.Message{Body: name, File: name}, nil
	}
	m := &source.Message{Body: "file"}
	if r.Files == 0 {
		m.File = "file"
	}
	return m, nil
}

// readUpload reads the comment on posted files. Without one, there is nothing to send.
func readUpload(r *source.Request, data map[string]any) (*source.Message, error) {
	if len(payload.Objects(data["files"], 1)) == 0 {
		return nil, webErrorf("invalid_arguments", "files is missing")
	}
	m, err := compose.CheckContent(slackMessage(map[string]any{"text": data["initial_comment"], "blocks": data["blocks"]},
		markup.DialectSlack), "Slack", r)
	if err != nil {
		return &source.Message{Skip: true}, nil
	}
	return m, nil
}

// readFile reads a file with its comment, or the text of a file.
func readFile(r *source.Request, data map[string]any) (*source.Message, error) {
	content := payload.Text(data["content"])
	if content == "" && r.Files == 0 {
		return nil, webErrorf("no_file_data", "the request has neither a file nor content")
	}
	m := slackMessage(map[string]any{"text": data["initial_comment"]}, markup.DialectSlack)
	m.Title = payload.Text(payload.Or(data["title"], data["filename"]))
	var body compose.Lines
	body.Add(m.Body)
	if content != "" {
		body.Add("```\n" + escapeCode(content) + "\n```")
	}
	m.Body = body.String()
	return compose.CheckContent(m, "Slack", r)
}

func slackNothing(source.Outcome) map[string]any { return nil }

// The names and IDs of the workspace and the bot in answers.
const (
	slackName = "caddy-notify"
	slackTeam = "T00000000"
	slackUser = "U00000000"
	slackBot  = "B00000000"
	slackRoom = "C00000000"
)

func slackAuth(o source.Outcome) map[string]any {
	return map[string]any{
		"url": o.Request.Address + "/", "team": slackName, "team_id": slackTeam, "user": slackName, "user_id": slackUser,
		"bot_id": slackBot,
	}
}

func slackPosted(o source.Outcome) map[string]any { return slackAnswer(o, compose.TimestampID(o)) }

func slackUpdated(o source.Outcome) map[string]any {
	return slackAnswer(o, payload.Text(o.Message.Echo["ts"]))
}

// slackAnswer returns the answer about a message whose ID is ts.
func slackAnswer(o source.Outcome, ts string) map[string]any {
	sent := o.Message.Echo
	return map[string]any{
		"channel": cmp.Or(payload.Text(sent["channel"]), slackRoom), "ts": ts, "message_ts": ts, "text": payload.Text(sent["text"]),
		"message": map[string]any{
			"type": "message", "subtype": "bot_message", "text": payload.Text(sent["text"]),
			"username": cmp.Or(payload.Text(sent["username"]), slackName),
			"bot_id":   slackBot, "ts": ts,
		},
	}
}

// slackUploadURL returns an address to post a file to.
func slackUploadURL(o source.Outcome) map[string]any {
	id := "F" + compose.TextID(o, 10)
	query := url.Values{"filename": {payload.Text(o.Message.Echo["filename"])}}
	path := "upload/v1/" + id
	if name, ticket := o.Request.Ticket(path); ticket != "" {
		query.Set(name, ticket)
	}
	return map[string]any{"file_id": id, "upload_url": o.Request.Address + "/" + path + "?" + query.Encode()}
}

func replyUploaded(o source.Outcome) source.Reply {
	r := source.Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(markup.Printable(o.Error))}
	if o.Error == "" {
		r.Body = []byte("OK")
	}
	return r
}

func slackUploaded(o source.Outcome) map[string]any {
	files := []any{}
	for _, f := range payload.Objects(o.Message.Echo["files"], compose.MaxFacts) {
		files = append(files, map[string]any{"id": payload.Text(f["id"]), "title": payload.Text(f["title"])})
	}
	return map[string]any{"files": files}
}

func slackFile(o source.Outcome) map[string]any {
	sent := o.Message.Echo
	return map[string]any{"file": map[string]any{
		"id": "F" + compose.TextID(o, 10), "created": o.Time.Unix(), "name": payload.Text(sent["filename"]),
		"title": payload.Text(payload.Or(sent["title"], sent["filename"])),
	}}
}
