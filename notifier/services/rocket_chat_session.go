package services

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// signIn begins a session. It lasts for one message, as a server keeps each
// session for months and limits how many there are.
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
		return nil, errors.New("Rocket.Chat has not let the user in: " + answer.Message)
	}
	return map[string]string{"X-User-Id": answer.Data.UserID, "X-Auth-Token": answer.Data.AuthToken}, nil
}

// signOut ends a session; the message has arrived, so that a failure is none.
func (r *rocketChat) signOut(ctx context.Context, c *notifier.Client, header map[string]string) {
	_, _ = c.Do(ctx, &notifier.Request{Method: http.MethodPost, URL: r.URL("api", "v1", "logout"), Header: header})
}
