package slack

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The REST API of Rocket.Chat is for programs that post as a user, with a token in the
// header X-Auth-Token. Alertmanager has it as rocketchat_configs. See
// https://developer.rocket.chat/apidocs/post-message.

// rocketAPI is the beginning of the paths of the REST API.
const rocketAPI = "api/v1"

// rocketEndpoints returns the endpoints of the REST API. Their paths differ from a webhook's: a
// client would take a webhook's answer for an error and send again.
func rocketEndpoints() []source.Endpoint {
	return []source.Endpoint{
		{Paths: []string{rocketAPI + "/chat.postMessage", rocketAPI + "/chat.sendMessage"}, Read: readRocket, Reply: replyRocket(rocketPosted)},
		{Paths: []string{rocketAPI + "/login"}, Read: readRocketLogin, Reply: replyRocket(rocketSession)},
		{
			Methods: []string{http.MethodGet, http.MethodPost}, Paths: []string{rocketAPI + "/logout", rocketAPI + "/me"},
			Reply: replyRocket(rocketMe),
		},
		{Methods: compose.GetMethods, Paths: []string{rocketAPI + "/info", "api/info"}, Reply: replyRocket(rocketInfo), Public: true},
		{Methods: compose.AnyMethod, Other: isBelow(rocketAPI), Read: readRocketUnknown, Reply: replyRocket(nil)},
	}
}

// isBelow returns a function that reports whether a path is prefix or below it.
func isBelow(prefix string) func(path string) bool {
	return func(path string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
}

// readRocket reads a message from the fields of chat.postMessage or, below message, the fields of
// chat.sendMessage.
func readRocket(_ context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("Rocket.Chat")
	if err != nil {
		return nil, err
	}
	r.Payload = nil // the address identifies the format
	if message, ok := payload.Get(data, "message").(map[string]any); ok {
		data = message
	}
	m, err := compose.CheckContent(slackMessage(data, markup.DialectRocketChat), "Rocket.Chat", r)
	if err != nil {
		return nil, err
	}
	compose.Echo(m, "msg", payload.Text(payload.Or(payload.Get(data, "text"), payload.Get(data, "msg"))))
	compose.Echo(m, "alias", payload.Get(data, "alias"))
	compose.Echo(m, "channel", payload.Text(payload.Get(data, "channel")))
	compose.Echo(m, "rid", payload.Text(payload.Or(payload.Get(data, "roomId"), payload.Get(data, "rid"))))
	return m, nil
}

// readRocketUnknown refuses a method that the gateway does not have.
func readRocketUnknown(context.Context, *source.Request) (*source.Message, error) {
	return nil, source.Errorf(http.StatusNotFound,
		"the gateway does not have this method of Rocket.Chat; it has chat.postMessage and chat.sendMessage")
}

// replyRocket returns a function that answers with the fields of answer, or with an
// error. Alertmanager sends a message again if the answer is not this JSON.
func replyRocket(answer func(o source.Outcome) map[string]any) func(o source.Outcome) source.Reply {
	return func(o source.Outcome) source.Reply {
		switch {
		case o.Error == "":
			out := answer(o)
			out["success"] = true
			return compose.JSONReply(http.StatusOK, out)
		case o.Status == http.StatusUnauthorized:
			return compose.JSONReply(o.Status, map[string]any{"success": false, "status": "error", "message": o.Error, "error": o.Error})
		}
		return compose.JSONReply(o.Status, map[string]any{"success": false, "error": o.Error})
	}
}

// rocketIDLength is the length of an ID in Rocket.Chat.
const rocketIDLength = 17

// The ID of the user in answers, and of the room if the client names none.
const (
	rocketUser = "caddynotify000000"
	rocketRoom = "GENERAL"
)

func rocketPosted(o source.Outcome) map[string]any {
	sent := o.Message.Echo
	channel := cmp.Or(payload.Text(sent["channel"]), payload.Text(sent["rid"]), rocketRoom)
	at := o.Time.UTC().Format(rocketTime)
	return map[string]any{
		"ts": o.Time.UnixMilli(), "channel": strings.TrimLeft(channel, "#@"),
		"message": map[string]any{
			"_id": compose.TextID(o, rocketIDLength), "rid": cmp.Or(payload.Text(sent["rid"]), rocketRoom), "msg": payload.Text(sent["msg"]),
			"alias": payload.Text(sent["alias"]),
			"ts":    at, "_updatedAt": at, "parseUrls": true, "groupable": false, "u": rocketAccount(),
		},
	}
}

// rocketTime is the layout of times in Rocket.Chat.
const rocketTime = "2006-01-02T15:04:05.000Z"

func rocketAccount() map[string]any {
	return map[string]any{"_id": rocketUser, "username": slackName, "name": slackName}
}

// readRocketLogin reads a login. The password is the token, and later requests have it in
// X-Auth-Token.
func readRocketLogin(_ context.Context, r *source.Request) (*source.Message, error) {
	m := &source.Message{Skip: true}
	compose.Echo(m, "password", r.Field("password"))
	return m, nil
}

func rocketSession(o source.Outcome) map[string]any {
	token := cmp.Or(payload.Text(o.Message.Echo["password"]), compose.TextID(o, rocketIDLength))
	return map[string]any{"status": "success", "data": map[string]any{"userId": rocketUser, "authToken": token, "me": rocketAccount()}}
}

func rocketMe(source.Outcome) map[string]any {
	out := rocketAccount()
	out["status"] = "success"
	return out
}

func rocketInfo(source.Outcome) map[string]any { return map[string]any{"version": "8.0"} }
