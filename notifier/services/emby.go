package services

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var (
	_ = notifier.Register[emby]()
	_ = notifier.Register[jellyfin]()
)

// emby shows the message in the apps that a user of an Emby server may control.
type emby struct{ embyServer }

// jellyfin does the same on a Jellyfin server. Jellyfin is a fork of Emby.
type jellyfin struct{ embyServer }

func (e *emby) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Emby", "https://dev.emby.media/reference/RestAPI/SessionsService/postSessionsByIdMessage.html"
	s.Setup = "Create a user for the gateway on the Emby server and allow it to remote " +
		"control other users; the message appears in the connected apps of those users."
	s.Groups(notifier.GroupMedia)
	s.Words("media server")
	e.describe(s, "emby[s]")
	s.Param("host").Example("emby.example.com")
}

func (j *jellyfin) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Jellyfin", "https://api.jellyfin.org/#tag/Session/operation/SendMessageCommand"
	s.Setup = "Create a user for the gateway on the Jellyfin server and allow it to remote " +
		"control other users; the message appears in the connected apps of those users."
	s.Groups(notifier.GroupMedia)
	s.Words("media server")
	j.describe(s, "jellyfin[s]")
	s.Param("host").Example("jellyfin.example.com")
}

// embyServer is a server with the API that Emby and Jellyfin share.
type embyServer struct {
	notifier.Server
	modal   bool
	session signin.Session[embySession]
}

// embySession is a session after the sign-in.
type embySession struct{ token, userID string }

func (e *embyServer) describe(s *notifier.Schema, schemes string) {
	s.URL(schemes + "://{user}[:{password}]@{host}[:{port}]")
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.Server(&e.Server)
	s.Param("user").Example("alerts")
	s.Param("password").Example("pa55word")
	s.Bool(&e.modal, "modal", false, "show the message until it is closed, not only for a minute")
}

// Finish sets the default port and the request that signs out.
func (e *embyServer) Finish(*notifier.Schema) error {
	e.session.SignOut = func(ctx context.Context, c *notifier.Client, s embySession) error {
		q := e.request(s, nil, "Sessions", "Logout")
		q.Method = "POST"
		_, err := c.Do(ctx, q)
		return err
	}
	if e.Port == 0 {
		e.Port = 8096
	}
	return nil
}

func (e *embyServer) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (embySession, time.Duration, error) {
		s, err := e.signIn(ctx, c)
		return s, 0, err
	}
	payload := map[string]any{"Header": m.Title, "Text": m.Body}
	if !e.modal {
		payload["TimeoutMs"] = time.Minute.Milliseconds()
	}
	return e.session.Do(ctx, c, signIn, func(s embySession) error {
		var clients []struct{ ID string }
		q := e.request(s, nil, "Sessions")
		q.Query = url.Values{"ControllableByUserId": {s.userID}}
		if err := c.DoJSON(ctx, q, &clients); err != nil {
			return fmt.Errorf("listing the connected apps: %w", err)
		}
		var ids []string
		for _, client := range clients {
			if client.ID != "" {
				ids = append(ids, client.ID)
			}
		}
		if len(ids) == 0 {
			return errors.New("no app that the user may control is connected, so nobody has seen the message")
		}
		return c.Steps.Each(ctx, ids, func(ctx context.Context, id string) error {
			_, err := c.Do(ctx, e.request(s, notifier.JSON(payload), "Sessions", id, "Message"))
			return err
		})
	})
}

func (e *embyServer) signIn(ctx context.Context, c *notifier.Client) (s embySession, err error) {
	login := map[string]string{"Username": e.User, "pw": e.Password, "password": "", "passwordMd5": ""}
	if e.Password != "" {
		// Different versions of the servers read different ones of the three fields.
		login["password"] = fmt.Sprintf("%x", sha1.Sum([]byte(e.Password)))
		login["passwordMd5"] = fmt.Sprintf("%x", md5.Sum([]byte(e.Password)))
	}
	var answer struct {
		AccessToken string
		ID          string
		User        struct{ ID string }
	}
	if err := c.DoJSON(ctx, e.request(s, notifier.JSON(login), "Users", "AuthenticateByName"), &answer); err != nil {
		return s, fmt.Errorf("signing in: %w", err)
	}
	s = embySession{answer.AccessToken, answer.User.ID}
	if s.userID == "" {
		s.userID = answer.ID
	}
	if s.token == "" || s.userID == "" {
		return s, errors.New("signing in: the answer has no token or no user ID")
	}
	return s, nil
}

// embyClient identifies the gateway. DeviceId is the one that Apprise sends, so
// that servers do not list a second device for the same URL.
const embyClient = `MediaBrowser Client="Caddy", Device="Caddy", DeviceId="48df9504-6843-49be-9f2d-a685e25a0bc8", Version="1.13.0"`

// request returns a request to the path. It is authorized if s has a token.
func (e *embyServer) request(s embySession, body *notifier.Body, path ...string) *notifier.Request {
	header := map[string]string{"Content-Type": "application/json", "X-Emby-Authorization": embyClient}
	if s.token != "" {
		header["X-Emby-Authorization"] += `, UserId="` + e.User + `"`
		header["X-MediaBrowser-Token"] = s.token
	}
	return &notifier.Request{URL: e.URL(path...), Header: header, Body: body}
}
