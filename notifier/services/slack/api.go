package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// api returns a request for a method of Slack's web API.
func (k *service) api(method string) *notifier.Request {
	return &notifier.Request{
		URL:    "https://slack.com/api/" + method,
		Header: map[string]string{"Authorization": "Bearer " + k.accessToken},
	}
}

// response has the fields of every answer of the web API.
type response struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// check returns the error in the answer, or nil. The error is
// [notifier.ErrRefused] if another content may help.
func (a response) check() error {
	if a.OK {
		return nil
	}
	if a.Error == "" {
		return errors.New("Slack did not answer ok")
	}
	err := fmt.Errorf("Slack answered %s", a.Error)
	if strings.HasPrefix(a.Error, "invalid_blocks") || slices.Contains(contentErrors, a.Error) {
		return notifier.Refused(err)
	}
	if slices.Contains(deniedErrors, a.Error) {
		return notifier.Denied(err)
	}
	return err
}

// deniedErrors are errors because of the token or the target. See
// https://docs.slack.dev/reference/methods/chat.postMessage#errors.
var deniedErrors = []string{
	"access_denied", "account_inactive", "cannot_dm_bot", "channel_not_found", "invalid_auth",
	"is_archived", "missing_scope", "no_permission", "not_allowed_token_type",
	"not_authed", "not_in_channel", "restricted_action", "team_access_not_granted",
	"token_expired", "token_revoked", "user_not_found", "users_not_found",
}

// contentErrors are errors because of the content of a message.
var contentErrors = []string{"msg_too_long", "msg_blocks_too_long", "invalid_attachments", "attachment_payload_limit_exceeded"}

// lookup returns the id of the user with this e-mail address.
func (k *service) lookup(ctx context.Context, c *notifier.Client, email string) (string, error) {
	if k.accessToken == "" {
		return "", errors.New("only a bot can look up e-mail addresses; write #channel or @user instead")
	}
	var answer struct {
		response
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	q := k.api("users.lookupByEmail")
	q.Query = notifier.Fields("email", email)
	q.Header["Content-Type"] = "application/x-www-form-urlencoded"
	if err := c.DoJSON(ctx, q, &answer); err != nil {
		return "", err
	}
	if err := answer.check(); err != nil {
		return "", err
	}
	if answer.User.ID == "" {
		return "", errors.New("no user of Slack has this e-mail address")
	}
	return answer.User.ID, nil
}
