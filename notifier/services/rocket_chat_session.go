package services

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// signIn begins a session for one message. Sessions are not reused: a server keeps
// each for months and limits their number.
func (r *rocketChat) signIn(ctx context.Context, c *notifier.Client) (map[string]string, error) {
	var answer struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Data    struct {
			AuthToken string `json:"authToken"`
			UserID    string `json:"userId"`
		} `json:"data"`
	}
	err := c.DoJSON(ctx, &notifier.Request{
		URL:  r.URL("api", "v1", "login"),
		Body: notifier.Form(notifier.Fields("username", r.User, "password", r.Password)),
	}, &answer)
	if err != nil {
		return nil, err
	}
	if answer.Status != "success" || answer.Data.AuthToken == "" {
		return nil, notifier.Denied(errors.New("Rocket.Chat refused the login: " + answer.Message))
	}
	return map[string]string{"X-User-Id": answer.Data.UserID, "X-Auth-Token": answer.Data.AuthToken}, nil
}

// signOut ends a session. Its error is ignored, since the message has arrived.
func (r *rocketChat) signOut(ctx context.Context, c *notifier.Client, header map[string]string) {
	_, _ = c.Do(ctx, &notifier.Request{Method: http.MethodPost, URL: r.URL("api", "v1", "logout"), Header: header})
}
