package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

// session is a signed-in user of a server.
type session struct {
	base, version string // address and version of the API
	token         string
	user, home    string // the user's id, and the server in it
	foreign       bool   // the token is from the URL, not from a login
	restored      bool   // the token comes from a login before a restart

	// events belongs to the destination: a message may outlive the session in
	// which its events got their transaction ids.
	events *atomic.Int64

	deviceID string
	crypto   chan struct{} // holds a value while device is in use
	device   *device       // nil until the first message to an encrypted room

	mu        sync.Mutex
	rooms     map[string]string // room ids by target
	encrypted map[string]bool   // rooms that are encrypted, by id
	standIn   bool              // the last join was answered by a stand-in for a homeserver
}

// savedSession is the name of the session that is kept over a restart. Without
// it, each start would add a device to the user's list.
const savedSession = "session"

// signIn finds the API and logs in, unless the URL has an access token or a
// session is kept. If the server does not accept the session, signIn returns it
// with the error.
func (x *service) signIn(ctx context.Context, c *notifier.Client, device string) (*session, error) {
	s := &session{
		base: x.URL(), version: x.version, events: &x.events, rooms: map[string]string{},
		encrypted: map[string]bool{}, crypto: make(chan struct{}, 1),
	}
	if x.Secure && x.discovery {
		if err := s.discover(ctx, c); err != nil {
			return nil, fmt.Errorf("finding the server's API: %w", err)
		}
	}
	var account struct {
		Token  string `json:"access_token"`
		User   string `json:"user_id"`
		Home   string `json:"home_server"`
		Device string `json:"device_id"`
	}
	if x.token != "" && x.User == "" {
		s.token, s.foreign = x.token, true
	} else if c.LoadState(ctx, savedSession, &account) && account.Token != "" {
		s.token, s.restored = account.Token, true
	} else {
		err := s.login(ctx, c, x, device, &account)
		if err != nil {
			if refused := s.register(ctx, c, x, device, &account); refused != nil {
				both := fmt.Errorf("signing in: %w; registering instead: %w", err, refused)
				if hasStatus(err, http.StatusUnauthorized, http.StatusForbidden) { // registering helps only on a server where anybody may
					return nil, notifier.Denied(both)
				}
				return nil, both
			}
		}
		if s.token = account.Token; s.token == "" {
			return nil, errors.New("signing in: the server returned no access token")
		}
		c.SaveState(ctx, savedSession, account)
	}
	if s.user = account.User; s.user == "" {
		// If this fails, home is the host in the URL.
		if err := s.call(ctx, c, "GET", nil, &account, "account", "whoami"); err == nil {
			s.user = account.User
		} else if signin.IsExpired(err) {
			return s, fmt.Errorf("signing in: %w", err)
		}
	}
	s.deviceID = account.Device
	if s.home = account.Home; s.home == "" {
		_, s.home, _ = strings.Cut(s.user, ":")
	}
	if s.home == "" {
		s.home = x.Host
	}
	return s, nil
}

// login logs in with user and password.
func (s *session) login(ctx context.Context, c *notifier.Client, x *service, device string, account any) error {
	if x.User == "" || x.token == "" {
		return errors.New("the URL has neither user and password nor an access token")
	}
	payload := map[string]any{"type": "m.login.password", "password": x.token, "initial_device_display_name": device}
	if s.version == "2" {
		payload["user"] = x.User
	} else {
		payload["identifier"] = map[string]string{"type": "m.id.user", "user": x.User}
	}
	return s.call(ctx, c, "POST", payload, account, "login")
}

// register creates an account, on servers with open registration.
func (s *session) register(ctx context.Context, c *notifier.Client, x *service, device string, account any) error {
	payload := map[string]any{"kind": "user", "auth": map[string]string{"type": "m.login.dummy"}, "initial_device_display_name": device}
	if x.User != "" {
		payload["username"] = x.User
	}
	if x.token != "" {
		payload["password"] = x.token
	}
	q := s.request("POST", payload, "register")
	q.Query = notifier.Fields("kind", "user")
	return s.do(ctx, c, q, account)
}

// logout ends the session if it was opened by a login. The server then removes
// the device from its list.
func (s *session) logout(ctx context.Context, c *notifier.Client) error {
	if s.foreign {
		return nil
	}
	return s.call(ctx, c, "POST", struct{}{}, nil, "logout")
}
