package programs

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
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The Web API of Slack is for bots, with methods such as chat.postMessage below /api/.
// See https://docs.slack.dev/apis/web-api/.

// slackMethod is a method of the Web API.
type slackMethod struct {
	// read returns the message of a request. nil means that a request sends nothing.
	read func(r *source.Request, data map[string]any) (*source.Message, error)

	// answer returns the fields of the answer to a request with success.
	answer func(o source.Outcome) map[string]any
}

// slackMethods are the methods that programs need to send messages.
var slackMethods = map[string]slackMethod{
	"api.test":                     {nil, slackNothing},
	"auth.test":                    {nil, slackAuth},
	"chat.postMessage":             {readSlackMessage, slackPosted},
	"chat.postEphemeral":           {readSlackMessage, slackPosted},
	"chat.meMessage":               {readSlackMessage, slackPosted},
	"chat.update":                  {readSlackUpdate, slackUpdated},
	"chat.delete":                  {nil, slackUpdated},
	"conversations.join":           {nil, slackNothing},
	"files.completeUploadExternal": {readSlackUpload, slackUploaded},
	"files.getUploadURLExternal":   {readSlackUploadURL, slackUploadURL},
	"files.upload":                 {readSlackFile, slackFile},
	"reactions.add":                {nil, slackNothing},
	"reactions.remove":             {nil, slackNothing},
}

// slackFamilies are the beginnings of the names of other methods.
var slackFamilies = []string{"api", "apps", "auth", "bots", "chat", "conversations", "files", "pins", "reactions", "team", "usergroups", "users", "views"}

// slackWebEndpoints returns the endpoints of the Web API, which has GET for all methods.
func slackWebEndpoints() []source.Endpoint {
	methods := []string{http.MethodGet, http.MethodPost}
	var out []source.Endpoint
	for name, method := range slackMethods {
		out = append(out, source.Endpoint{
			Methods: methods, Paths: []string{name, "api/" + name},
			Read: func(_ context.Context, r *source.Request) (*source.Message, error) { return readSlackWeb(r, method) },
			Reply: func(o source.Outcome) source.Reply {
				if o.Error != "" {
					return slackWebError(o)
				}
				answer := map[string]any{"ok": true}
				maps.Copy(answer, method.answer(o))
				return jsonReply(http.StatusOK, answer)
			},
		})
	}
	return append(
		out,
		source.Endpoint{Paths: []string{"upload/v1/*", "api/upload/v1/*"}, Read: readSlackUploaded, Reply: replySlackUploaded},
		source.Endpoint{Methods: anyMethod, Other: isSlackMethod, Read: readSlackUnknown, Reply: slackWebError},
	)
}

// isSlackMethod reports whether a path is that of a method of an API: it begins with api,
// or ends with a name such as chat.postMessage.
func isSlackMethod(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	family, method, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ".")
	return first == "api" || slices.Contains(slackFamilies, family) && slackMethodName.MatchString(method)
}

// slackMethodName matches what follows the family in the name of a method.
var slackMethodName = lazyregexp.New(`^[A-Za-z]+(\.[A-Za-z]+)*$`)

// readSlackWeb reads a request to the Web API: the fields of the query string, of a form
// or of a JSON object. Objects in a form are JSON.
func readSlackWeb(r *source.Request, method slackMethod) (*source.Message, error) {
	data := source.FormFields(r.Query)
	if len(r.Body) > 0 || len(r.Form) > 0 {
		body, err := r.JSONPayload("Slack")
		if err != nil {
			return nil, slackErrorf("invalid_json", "%w", err)
		}
		r.Payload = nil // the method says what it is
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
			return nil, slackErrorf("invalid_arguments", "%s must be JSON: %w", name, err)
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
		echo(m, name, data[name])
	}
	return m, nil
}

// slackErrorf returns an error with a code of Slack.
func slackErrorf(code, format string, args ...any) *source.Error {
	err := source.Errorf(http.StatusBadRequest, format, args...)
	err.Code = code
	return err
}

// slackCodes are the codes of errors by status. See
// https://docs.slack.dev/reference/methods/chat.postMessage#errors.
var slackCodes = map[int]string{
	http.StatusBadRequest:            "invalid_arguments",
	http.StatusUnauthorized:          "invalid_auth",
	http.StatusForbidden:             "restricted_action",
	http.StatusNotFound:              "channel_not_found",
	http.StatusMethodNotAllowed:      "invalid_post_type",
	http.StatusRequestEntityTooLarge: "msg_too_long",
	http.StatusFailedDependency:      "fatal_error",
	http.StatusServiceUnavailable:    "service_unavailable",
}

// slackWebError answers with an error. Slack's status would be 200; this one tells
// programs that only look at the status, too.
func slackWebError(o source.Outcome) source.Reply {
	code := cmp.Or(o.Code, slackCodes[o.Status], "internal_error")
	return jsonReply(o.Status, map[string]any{"ok": false, "error": code, "response_metadata": map[string]any{"messages": []string{"[ERROR] " + o.Error}}})
}

// readSlackUnknown refuses a method that the gateway does not have.
func readSlackUnknown(context.Context, *source.Request) (*source.Message, error) {
	return nil, &source.Error{Status: http.StatusNotFound, Code: "unknown_method", Err: fmt.Errorf("the gateway does not have this method of Slack; it has %s", strings.Join(slices.Sorted(maps.Keys(slackMethods)), ", "))}
}

// readSlackMessage reads a new message.
func readSlackMessage(r *source.Request, data map[string]any) (*source.Message, error) {
	m, err := checkContent(slackMessage(data), "Slack", r)
	if err != nil {
		return nil, slackErrorf("no_text", "%w", err)
	}
	return m, nil
}

// readSlackUpdate reads the new text of a message. It is sent as a message of its own.
// A change of something else, such as of buttons, is not sent.
func readSlackUpdate(r *source.Request, data map[string]any) (*source.Message, error) {
	m, err := checkContent(slackMessage(data), "Slack", r)
	if err != nil {
		return &source.Message{Skip: true}, nil
	}
	markEdited(m)
	return m, nil
}

// readSlackUploadURL checks a request for an address to post a file to.
func readSlackUploadURL(_ *source.Request, data map[string]any) (*source.Message, error) {
	if payload.Text(data["filename"]) == "" {
		return nil, slackErrorf("invalid_arguments", "filename is missing")
	}
	return &source.Message{Skip: true}, nil
}

// readSlackUploaded reads a file, as a form or as the body. It is sent at once, because
// the gateway keeps nothing between requests.
func readSlackUploaded(_ context.Context, r *source.Request) (*source.Message, error) {
	if r.Files == 0 && len(r.Body) == 0 {
		return nil, source.Errorf(http.StatusBadRequest, "the request has no file")
	}
	name := path.Base("/" + r.Query.Get("filename"))
	if name == "/" {
		name = "file"
	}
	m := &source.Message{Body: name}
	if r.Files == 0 {
		m.File = name
	}
	return m, nil
}

// readSlackUpload reads the comment on files that were posted. Without one, there is
// nothing to send.
func readSlackUpload(r *source.Request, data map[string]any) (*source.Message, error) {
	if len(payload.Objects(data["files"], 1)) == 0 {
		return nil, slackErrorf("invalid_arguments", "files is missing")
	}
	m, err := checkContent(slackMessage(map[string]any{"text": data["initial_comment"], "blocks": data["blocks"]}), "Slack", r)
	if err != nil {
		return &source.Message{Skip: true}, nil
	}
	return m, nil
}

// readSlackFile reads a file with its comment, or the text of a file.
func readSlackFile(r *source.Request, data map[string]any) (*source.Message, error) {
	content := payload.Text(data["content"])
	if content == "" && r.Files == 0 {
		return nil, slackErrorf("no_file_data", "the request has neither a file nor content")
	}
	m := slackMessage(map[string]any{"text": data["initial_comment"]})
	m.Title = payload.Text(payload.Or(data["title"], data["filename"]))
	var body lines
	body.add(m.Body)
	if content != "" {
		body.add("```\n" + content + "\n```")
	}
	m.Body = body.String()
	return checkContent(m, "Slack", r)
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
	return map[string]any{"url": o.Request.Address + "/", "team": slackName, "team_id": slackTeam, "user": slackName, "user_id": slackUser, "bot_id": slackBot}
}

func slackPosted(o source.Outcome) map[string]any { return slackAnswer(o, timestampID(o)) }

func slackUpdated(o source.Outcome) map[string]any {
	return slackAnswer(o, payload.Text(o.Message.Echo["ts"]))
}

// slackAnswer returns the answer about a message whose ID is ts.
func slackAnswer(o source.Outcome, ts string) map[string]any {
	sent := o.Message.Echo
	return map[string]any{
		"channel": cmp.Or(payload.Text(sent["channel"]), slackRoom), "ts": ts, "message_ts": ts, "text": payload.Text(sent["text"]),
		"message": map[string]any{
			"type": "message", "subtype": "bot_message", "text": payload.Text(sent["text"]), "username": cmp.Or(payload.Text(sent["username"]), slackName),
			"bot_id": slackBot, "ts": ts,
		},
	}
}

// slackUploadURL returns an address to post a file to. Some clients send no token to
// it, so it has that of the request.
func slackUploadURL(o source.Outcome) map[string]any {
	r := o.Request
	id := "F" + textID(o, 10)
	query := url.Values{"filename": {payload.Text(o.Message.Echo["filename"])}}
	if token := cmp.Or(r.Bearer(), r.Query.Get("token"), r.Field("token")); token != "" {
		query.Set("token", token)
	}
	return map[string]any{"file_id": id, "upload_url": r.Address + "/upload/v1/" + id + "?" + query.Encode()}
}

func replySlackUploaded(o source.Outcome) source.Reply {
	r := source.Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(markup.Printable(o.Error))}
	if o.Error == "" {
		r.Body = []byte("OK")
	}
	return r
}

func slackUploaded(o source.Outcome) map[string]any {
	files := []any{}
	for _, f := range payload.Objects(o.Message.Echo["files"], maxFacts) {
		files = append(files, map[string]any{"id": payload.Text(f["id"]), "title": payload.Text(f["title"])})
	}
	return map[string]any{"files": files}
}

func slackFile(o source.Outcome) map[string]any {
	sent := o.Message.Echo
	return map[string]any{"file": map[string]any{
		"id": "F" + textID(o, 10), "created": o.Time.Unix(), "name": payload.Text(sent["filename"]), "title": payload.Text(payload.Or(sent["title"], sent["filename"])),
	}}
}
