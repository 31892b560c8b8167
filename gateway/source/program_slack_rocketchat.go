package source

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// The REST API of Rocket.Chat is for programs that post as a user, with a token in the
// header X-Auth-Token. Alertmanager has it as rocketchat_configs. See
// https://developer.rocket.chat/apidocs/post-message.

// rocketAPI is the beginning of the paths of the REST API.
const rocketAPI = "api/v1"

// rocketEndpoints returns the endpoints of the REST API. Their paths are not those of a
// webhook: a client takes the answer of a webhook for an error, and sends again.
func rocketEndpoints() []endpoint {
	return []endpoint{
		{paths: []string{rocketAPI + "/chat.postMessage", rocketAPI + "/chat.sendMessage"}, read: readRocket, reply: replyRocket(rocketPosted)},
		{paths: []string{rocketAPI + "/login"}, reply: replyRocket(rocketSession)},
		{methods: []string{http.MethodGet, http.MethodPost}, paths: []string{rocketAPI + "/logout", rocketAPI + "/me"}, reply: replyRocket(rocketMe)},
		{methods: getMethods, paths: []string{rocketAPI + "/info", "api/info"}, reply: replyRocket(rocketInfo), public: true},
		{methods: anyMethod, other: isBelow(rocketAPI), read: readRocketUnknown, reply: replyRocket(nil)},
	}
}

// isBelow returns a function that reports whether a path is prefix, or is below it.
func isBelow(prefix string) func(path string) bool {
	return func(path string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
}

// readRocket reads a message: the fields of chat.postMessage, or those of
// chat.sendMessage, which are below message.
func readRocket(_ context.Context, r *Request) (*Message, error) {
	data, err := r.jsonPayload("Rocket.Chat")
	if err != nil {
		return nil, err
	}
	r.decoded = nil // the address says what it is
	if message, ok := payload.Get(data, "message").(map[string]any); ok {
		data = message
	}
	m, err := slackMessage(data).check("Rocket.Chat", r)
	if err != nil {
		return nil, err
	}
	m.echo("msg", payload.Text(payload.Or(payload.Get(data, "text"), payload.Get(data, "msg"))))
	m.echo("alias", payload.Get(data, "alias"))
	m.echo("channel", payload.Text(payload.Get(data, "channel")))
	m.echo("rid", payload.Text(payload.Or(payload.Get(data, "roomId"), payload.Get(data, "rid"))))
	return m, nil
}

// readRocketUnknown refuses a method that the gateway does not have.
func readRocketUnknown(context.Context, *Request) (*Message, error) {
	return nil, errorf(http.StatusNotFound, "the gateway does not have this method of Rocket.Chat; it has chat.postMessage and chat.sendMessage")
}

// replyRocket returns a function that answers with the fields of answer, or with an
// error. Alertmanager sends a message again if the answer is not this JSON.
func replyRocket(answer func(o Outcome) map[string]any) func(o Outcome) Reply {
	return func(o Outcome) Reply {
		switch {
		case o.Error == "":
			out := answer(o)
			out["success"] = true
			return jsonReply(http.StatusOK, out)
		case o.Status == http.StatusUnauthorized:
			return jsonReply(o.Status, map[string]any{"success": false, "status": "error", "message": o.Error, "error": o.Error})
		}
		return jsonReply(o.Status, map[string]any{"success": false, "error": o.Error})
	}
}

// rocketIDLength is the length of an ID in Rocket.Chat.
const rocketIDLength = 17

// The ID of the user in answers, and of the room if the client names none.
const (
	rocketUser = "caddynotify000000"
	rocketRoom = "GENERAL"
)

func rocketPosted(o Outcome) map[string]any {
	sent := o.Message.sent
	channel := cmp.Or(payload.Text(sent["channel"]), payload.Text(sent["rid"]), rocketRoom)
	at := o.Time.UTC().Format(rocketTime)
	return map[string]any{
		"ts": o.Time.UnixMilli(), "channel": strings.TrimLeft(channel, "#@"),
		"message": map[string]any{
			"_id": o.textID(rocketIDLength), "rid": cmp.Or(payload.Text(sent["rid"]), rocketRoom), "msg": payload.Text(sent["msg"]), "alias": payload.Text(sent["alias"]),
			"ts": at, "_updatedAt": at, "parseUrls": true, "groupable": false, "u": rocketAccount(),
		},
	}
}

// rocketTime is the layout of times in Rocket.Chat.
const rocketTime = "2006-01-02T15:04:05.000Z"

func rocketAccount() map[string]any {
	return map[string]any{"_id": rocketUser, "username": slackName, "name": slackName}
}

// rocketSession answers to a login. The password is the token, so that what follows has
// it in X-Auth-Token.
func rocketSession(o Outcome) map[string]any {
	token := cmp.Or(o.Request.field("password"), o.textID(rocketIDLength))
	return map[string]any{"status": "success", "data": map[string]any{"userId": rocketUser, "authToken": token, "me": rocketAccount()}}
}

func rocketMe(Outcome) map[string]any {
	out := rocketAccount()
	out["status"] = "success"
	return out
}

func rocketInfo(Outcome) map[string]any { return map[string]any{"version": "8.0"} }
