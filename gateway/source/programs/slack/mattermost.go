package slack

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"path"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The REST API of Mattermost is for bots, with a token in Authorization: Bearer. See
// https://developers.mattermost.com/api-documentation/.

// mattermostAPI is the beginning of the paths of the REST API.
const mattermostAPI = "api/v4"

// mattermostEndpoints returns the endpoints of the REST API.
func mattermostEndpoints() []source.Endpoint {
	return []source.Endpoint{
		{Paths: []string{mattermostAPI + "/posts"}, Read: readMattermost, Reply: replyMattermost(http.StatusCreated, mattermostPost)},
		{Paths: []string{mattermostAPI + "/files"}, Read: readMattermostFile, Reply: replyMattermost(http.StatusCreated, mattermostFiles)},
		{
			Methods: compose.GetMethods, Paths: []string{mattermostAPI + "/teams/name/*/channels/name/*"},
			Reply: replyMattermost(http.StatusOK, mattermostChannel),
		},
		{Methods: compose.GetMethods, Paths: []string{mattermostAPI + "/users/me"}, Reply: replyMattermost(http.StatusOK, mattermostMe)},
		{Paths: []string{mattermostAPI + "/users/logout"}, Reply: replyMattermost(http.StatusOK, mattermostOK)},
		{
			Methods: compose.GetMethods, Paths: []string{mattermostAPI + "/system/ping"}, Reply: replyMattermost(http.StatusOK, mattermostOK),
			Public: true,
		},
		{Methods: compose.AnyMethod, Other: isBelow(mattermostAPI), Read: readMattermostUnknown, Reply: replyMattermost(0, nil)},
	}
}

// readMattermost reads a post. Its files were sent when they were uploaded, so a post with only
// files sends nothing.
func readMattermost(_ context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("Mattermost")
	if err != nil {
		return nil, err
	}
	r.Payload = nil // the address identifies the format
	m, err := compose.CheckContent(slackMessage(map[string]any{
		"text": payload.Get(data, "message"), "props": payload.Get(data, "props"), "priority": payload.Get(data, "metadata", "priority"),
	}, markup.DialectMattermost), "Mattermost", r)
	if files, _ := payload.Get(data, "file_ids").([]any); err != nil && len(files) > 0 {
		m, err = &source.Message{Skip: true}, nil
	}
	if err != nil {
		return nil, err
	}
	compose.Echo(m, "message", payload.Text(payload.Get(data, "message")))
	for _, name := range []string{"channel_id", "root_id", "file_ids", "props"} {
		compose.Echo(m, name, payload.Get(data, name))
	}
	return m, nil
}

// readMattermostFile reads files, in a form or as the body. They are sent at once,
// because the gateway keeps nothing between requests.
func readMattermostFile(_ context.Context, r *source.Request) (*source.Message, error) {
	name := path.Base("/" + r.Query.Get("filename"))
	switch {
	case r.Files == 0 && (len(r.Body) == 0 || name == "/"):
		return nil, source.Errorf(http.StatusBadRequest,
			"the request has no file; send a form with the field files, or a body and the parameter filename")
	case r.Files == 0:
		return &source.Message{Body: name, File: name}, nil
	}
	return &source.Message{}, nil
}

// readMattermostUnknown refuses what the gateway does not support.
func readMattermostUnknown(context.Context, *source.Request) (*source.Message, error) {
	return nil, source.Errorf(http.StatusNotFound,
		"the gateway does not have this address of Mattermost; it has POST …/api/v4/posts and POST …/api/v4/files")
}

// replyMattermost returns a function that answers with a status and answer, or with an
// error.
func replyMattermost(status int, answer func(o source.Outcome) map[string]any) func(o source.Outcome) source.Reply {
	return func(o source.Outcome) source.Reply {
		if o.Error != "" {
			return compose.JSONReply(o.Status, map[string]any{
				"id": "api.caddy_notify.app_error", "message": o.Error, "detailed_error": "",
				"request_id": "", "status_code": o.Status,
			})
		}
		return compose.JSONReply(status, answer(o))
	}
}

// mattermostIDLength is the length of an ID in Mattermost.
const mattermostIDLength = 26

// mattermostID returns an ID that follows from a name.
func mattermostID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:mattermostIDLength])
}

func mattermostPost(o source.Outcome) map[string]any {
	sent := o.Message.Echo
	at := o.Time.UnixMilli()
	return map[string]any{
		"id": strings.ToLower(compose.TextID(o, mattermostIDLength)), "create_at": at, "update_at": at, "edit_at": 0, "delete_at": 0,
		"is_pinned": false,
		"user_id":   mattermostID(slackName), "channel_id": payload.Text(sent["channel_id"]), "root_id": payload.Text(sent["root_id"]),
		"message": payload.Text(sent["message"]),
		"type":    "", "hashtags": "", "pending_post_id": "", "file_ids": payload.Or(sent["file_ids"], []any{}),
		"props": payload.Or(sent["props"], map[string]any{}), "metadata": map[string]any{},
	}
}

func mattermostFiles(o source.Outcome) map[string]any {
	infos := []any{}
	for i := range max(o.Request.Files, 1) {
		infos = append(infos, map[string]any{
			"id":      mattermostID(compose.TextID(o, rocketIDLength) + payload.Text(i)),
			"user_id": mattermostID(slackName), "create_at": o.Time.UnixMilli(),
		})
	}
	return map[string]any{"file_infos": infos, "client_ids": []any{}}
}

// mattermostChannel answers with a channel, whose ID selects nothing.
func mattermostChannel(o source.Outcome) map[string]any {
	segments := strings.Split(o.Request.Path, "/")
	team, name := segments[4], segments[len(segments)-1]
	return map[string]any{
		"id": mattermostID(team + "/" + name), "team_id": mattermostID(team), "name": name, "display_name": name,
		"type": "O",
	}
}

func mattermostMe(source.Outcome) map[string]any {
	return map[string]any{"id": mattermostID(slackName), "username": slackName, "is_bot": true}
}

func mattermostOK(source.Outcome) map[string]any { return map[string]any{"status": "OK"} }
