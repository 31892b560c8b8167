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

// emby shows the message on the screens that an Emby server's user controls.
type emby struct{ embyServer }

// jellyfin does the same on a Jellyfin server, which comes from Emby's.
type jellyfin struct{ embyServer }

func (e *emby) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Emby", "https://dev.emby.media/reference/RestAPI/SessionsService/postSessionsByIdMessage.html"
	e.describe(s, "emby[s]")
	s.Param("host").Example("emby.example.com")
}

func (j *jellyfin) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Jellyfin", "https://api.jellyfin.org/#tag/Session/operation/SendMessageCommand"
	j.describe(s, "jellyfin[s]")
	s.Param("host").Example("jellyfin.example.com")
}

// embyServer is what both have in common.
type embyServer struct {
	notifier.Server
	modal   bool
	session signin.Session[embyUser]
}

// embyUser is who has signed in.
type embyUser struct{ token, id string }

func (e *embyServer) describe(s *notifier.Schema, schemes string) {
	s.URL(schemes + "://{user}[:{password}]@{host}[:{port}]")
	s.Server(&e.Server)
	s.Param("user").Example("alerts")
	s.Param("password").Example("pa55word")
	s.Bool(&e.modal, "modal", false, "keep the message until it is closed, instead of a minute")
}

// Finish fills in the port of such servers.
func (e *embyServer) Finish(*notifier.Schema) error {
	e.session.SignOut = func(ctx context.Context, c *notifier.Client, u embyUser) error {
		q := e.request(u, nil, "Sessions", "Logout")
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
	signIn := func(ctx context.Context) (embyUser, time.Duration, error) {
		u, err := e.signIn(ctx, c)
		return u, 0, err
	}
	payload := map[string]any{"Header": m.Title, "Text": m.Body}
	if !e.modal {
		payload["TimeoutMs"] = time.Minute.Milliseconds()
	}
	return e.session.Do(ctx, c, signIn, func(u embyUser) error {
		var screens []struct{ ID string }
		q := e.request(u, nil, "Sessions")
		q.Query = url.Values{"ControllableByUserId": {u.id}}
		if err := c.DoJSON(ctx, q, &screens); err != nil {
			return fmt.Errorf("looking up who is watching: %w", err)
		}
		var ids []string
		for _, s := range screens {
			if s.ID != "" {
				ids = append(ids, s.ID)
			}
		}
		if len(ids) == 0 {
			return errors.New("no screen that the user controls is on, so nobody has seen the message")
		}
		return c.Steps.Each(ctx, ids, func(ctx context.Context, id string) error {
			_, err := c.Do(ctx, e.request(u, notifier.JSON(payload), "Sessions", id, "Message"))
			return err
		})
	})
}

func (e *embyServer) signIn(ctx context.Context, c *notifier.Client) (u embyUser, err error) {
	login := map[string]string{"Username": e.User, "pw": e.Password, "password": "", "passwordMd5": ""}
	if e.Password != "" {
		// Servers of different ages want different ones of the three.
		login["password"] = fmt.Sprintf("%x", sha1.Sum([]byte(e.Password)))
		login["passwordMd5"] = fmt.Sprintf("%x", md5.Sum([]byte(e.Password)))
	}
	var answer struct {
		AccessToken string
		ID          string
		User        struct{ ID string }
	}
	if err := c.DoJSON(ctx, e.request(u, notifier.JSON(login), "Users", "AuthenticateByName"), &answer); err != nil {
		return u, fmt.Errorf("signing in: %w", err)
	}
	u = embyUser{answer.AccessToken, answer.User.ID}
	if u.id == "" {
		u.id = answer.ID
	}
	if u.token == "" || u.id == "" {
		return u, errors.New("signing in: the service gave no token")
	}
	return u, nil
}

// embyClient introduces us. Servers list clients by the device's id, which
// users of these URLs have there already.
const embyClient = `MediaBrowser Client="Caddy", Device="Caddy", DeviceId="48df9504-6843-49be-9f2d-a685e25a0bc8", Version="1.13.0"`

func (e *embyServer) request(u embyUser, body *notifier.Body, path ...string) *notifier.Request {
	header := map[string]string{"Content-Type": "application/json", "X-Emby-Authorization": embyClient}
	if u.token != "" {
		header["X-Emby-Authorization"] += `, UserId="` + e.User + `"`
		header["X-MediaBrowser-Token"] = u.token
	}
	return &notifier.Request{URL: e.URL(path...), Header: header, Body: body}
}
