package source

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"path"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// The REST API of Mattermost is for bots, with a token in Authorization: Bearer. See
// https://developers.mattermost.com/api-documentation/.

// mattermostAPI is the beginning of the paths of the REST API.
const mattermostAPI = "api/v4"

// mattermostEndpoints returns the endpoints of the REST API.
func mattermostEndpoints() []endpoint {
	return []endpoint{
		{paths: []string{mattermostAPI + "/posts"}, read: readMattermost, reply: replyMattermost(http.StatusCreated, mattermostPost)},
		{paths: []string{mattermostAPI + "/files"}, read: readMattermostFile, reply: replyMattermost(http.StatusCreated, mattermostFiles)},
		{methods: getMethods, paths: []string{mattermostAPI + "/teams/name/*/channels/name/*"}, reply: replyMattermost(http.StatusOK, mattermostChannel)},
		{methods: getMethods, paths: []string{mattermostAPI + "/users/me"}, reply: replyMattermost(http.StatusOK, mattermostMe)},
		{paths: []string{mattermostAPI + "/users/logout"}, reply: replyMattermost(http.StatusOK, mattermostOK)},
		{methods: getMethods, paths: []string{mattermostAPI + "/system/ping"}, reply: replyMattermost(http.StatusOK, mattermostOK), public: true},
		{methods: anyMethod, other: isBelow(mattermostAPI), read: readMattermostUnknown, reply: replyMattermost(0, nil)},
	}
}

// readMattermost reads a post. Its files have been sent when they were uploaded, so that
// there is nothing to send of a post that has only files.
func readMattermost(_ context.Context, r *Request) (*Message, error) {
	data, err := r.jsonPayload("Mattermost")
	if err != nil {
		return nil, err
	}
	r.decoded = nil // the address says what it is
	m, err := slackMessage(map[string]any{
		"text": payload.Get(data, "message"), "attachments": payload.Get(data, "props", "attachments"), "priority": payload.Get(data, "metadata", "priority"),
	}).check("Mattermost", r)
	if files, _ := payload.Get(data, "file_ids").([]any); err != nil && len(files) > 0 {
		m, err = &Message{Skip: true}, nil
	}
	if err != nil {
		return nil, err
	}
	m.echo("message", payload.Text(payload.Get(data, "message")))
	for _, name := range []string{"channel_id", "root_id", "file_ids", "props"} {
		m.echo(name, payload.Get(data, name))
	}
	return m, nil
}

// readMattermostFile reads files, in a form or as the body. They are sent at once,
// because the gateway keeps nothing between requests.
func readMattermostFile(_ context.Context, r *Request) (*Message, error) {
	name := path.Base("/" + r.Query.Get("filename"))
	switch {
	case r.Files == 0 && (len(r.Body) == 0 || name == "/"):
		return nil, errorf(http.StatusBadRequest, "the request has no file; send a form with the field files, or a body and the parameter filename")
	case r.Files == 0:
		return &Message{Body: name, File: name}, nil
	}
	return &Message{}, nil
}

// readMattermostUnknown refuses what the gateway does not have.
func readMattermostUnknown(context.Context, *Request) (*Message, error) {
	return nil, errorf(http.StatusNotFound, "the gateway does not have this address of Mattermost; it has POST …/api/v4/posts and POST …/api/v4/files")
}

// replyMattermost returns a function that answers with a status and answer, or with an
// error.
func replyMattermost(status int, answer func(o Outcome) map[string]any) func(o Outcome) Reply {
	return func(o Outcome) Reply {
		if o.Error != "" {
			return jsonReply(o.Status, map[string]any{"id": "api.caddy_notify.app_error", "message": o.Error, "detailed_error": "", "request_id": "", "status_code": o.Status})
		}
		return jsonReply(status, answer(o))
	}
}

// mattermostIDLength is the length of an ID in Mattermost.
const mattermostIDLength = 26

// mattermostID returns an ID that follows from a name.
func mattermostID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:mattermostIDLength])
}

func mattermostPost(o Outcome) map[string]any {
	sent := o.Message.sent
	at := o.Time.UnixMilli()
	return map[string]any{
		"id": strings.ToLower(o.textID(mattermostIDLength)), "create_at": at, "update_at": at, "edit_at": 0, "delete_at": 0, "is_pinned": false,
		"user_id": mattermostID(slackName), "channel_id": payload.Text(sent["channel_id"]), "root_id": payload.Text(sent["root_id"]), "message": payload.Text(sent["message"]),
		"type": "", "hashtags": "", "pending_post_id": "", "file_ids": payload.Or(sent["file_ids"], []any{}), "props": payload.Or(sent["props"], map[string]any{}), "metadata": map[string]any{},
	}
}

func mattermostFiles(o Outcome) map[string]any {
	infos := []any{}
	for i := range max(o.Request.Files, 1) {
		infos = append(infos, map[string]any{"id": mattermostID(o.textID(rocketIDLength) + payload.Text(i)), "user_id": mattermostID(slackName), "create_at": o.Time.UnixMilli()})
	}
	return map[string]any{"file_infos": infos, "client_ids": []any{}}
}

// mattermostChannel answers with a channel, whose ID selects nothing.
func mattermostChannel(o Outcome) map[string]any {
	segments := strings.Split(o.Request.Path, "/")
	team, name := segments[4], segments[len(segments)-1]
	return map[string]any{"id": mattermostID(team + "/" + name), "team_id": mattermostID(team), "name": name, "display_name": name, "type": "O"}
}

func mattermostMe(Outcome) map[string]any {
	return map[string]any{"id": mattermostID(slackName), "username": slackName, "is_bot": true}
}

func mattermostOK(Outcome) map[string]any { return map[string]any{"status": "OK"} }
