package caddyhttp

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Console turns on the console: pages at `/notify/console` that show what keys reach
// and what is wrong there, and that try messages again or drop them. `configs` with
// `manage` turns it on, too.
type Console struct {
	// Who may use the console. `user` allows users that an authentication handler
	// before this one has authenticated, and clients with a certificate. `open` allows
	// everybody who can send the request. Default: who may manage saved keys, if
	// `configs` says so, and otherwise `user`.
	Manage string `json:"manage,omitempty"`

	// The users who may, with `manage` `user`, as the placeholder
	// `{http.auth.user.id}` names them. Then a client certificate does not suffice.
	// Default: every user, and every client with a certificate.
	ManageUsers []string `json:"manage_users,omitempty"`

	// Whether the address `/` of the site leads to the console, below the prefix of the site if it
	// has one. It does so only where the handlers after this one do not answer, or answer with
	// 404. Default: false.
	Home bool `json:"home,omitempty"`
}

// isHome reports whether a request is for the address that leads to the console with home.
func isHome(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// serveHome sends a visitor to the console, unless next answers the request.
func serveHome(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	notFound := func(status int, _ http.Header) bool { return status == http.StatusNotFound }
	rec := caddyhttp.NewResponseRecorder(w, new(bytes.Buffer), notFound)
	err := next.ServeHTTP(rec, r)
	if e, ok := errors.AsType[caddyhttp.HandlerError](err); err != nil && (!ok || e.StatusCode != http.StatusNotFound) {
		return err
	}
	if status := rec.Status(); err == nil && status != 0 && status != http.StatusNotFound {
		return nil
	}
	for name := range w.Header() { // they describe the answer that nobody gets
		if strings.HasPrefix(name, "Content-") {
			w.Header().Del(name)
		}
	}
	w.Header().Set("Location", strings.TrimPrefix(httpapi.RouteConsole, "/")) // relative, because the site may have a prefix
	w.WriteHeader(http.StatusFound)
	return nil
}

// checkHome returns an error if no path of a matcher is the address that home is about.
func (c *Console) checkHome(paths []string) error {
	root := func(pattern string) bool {
		rest := strings.Trim(pattern, "*")
		return rest == "" || rest == "/" || strings.HasPrefix(rest, "{")
	}
	if c == nil || !c.Home || slices.ContainsFunc(paths, root) {
		return nil
	}
	return errors.New("console: home has no effect, because the matcher excludes the address /; add / to the matcher, or remove home")
}

// Values of manage in console and configs.
const (
	manageUser = "user"
	manageOpen = "open"
)

// newManagers returns those that a setting names.
func newManagers(manage string, users []string) (*site.Managers, error) {
	switch {
	case len(users) > 0 && manage != manageUser:
		return nil, errors.New("manage_users needs manage user; set manage to user, or remove the users")
	case manage != "" && manage != manageUser && manage != manageOpen:
		return nil, errors.New("manage must be user or open")
	}
	if err := checkManageUsers(users); err != nil {
		return nil, errs.Prefix("manage_users", err)
	}
	return &site.Managers{Open: manage == manageOpen, Named: users}, nil
}

var errConsoleDiffers = errors.New("manage differs from manage of configs; write it only there, or alike")

// errConsoleWithoutPages is returned for console with page off.
var errConsoleWithoutPages = errors.New("console has no effect with page off, because it consists of pages; remove one of them")

// resolveManagers returns who may manage the site, or nil, and sets the console of r.
func (s *Settings) resolveManagers(r *settled) (m *site.Managers, err error) {
	if c := r.configs; c != nil && c.Manage != "" {
		m = &site.Managers{Open: c.Manage == manageOpen, Named: c.ManageUsers}
	}
	r.console = cmp.Or(s.Console, r.console)
	c := r.console
	if c == nil {
		return m, nil
	}
	own, err := newManagers(c.Manage, c.ManageUsers)
	switch {
	case err != nil || m == nil:
		return own, err
	case c.Manage != "" && (own.Open != m.Open || !slices.Equal(own.Named, m.Named)):
		return nil, errConsoleDiffers
	}
	return m, nil
}

// readConsole reads a block console, which may be empty.
func (b *settingsBlock) readConsole(d *caddyfile.Dispenser, _ []string) error {
	b.to.Console = &Console{}
	b.to.Caddyfile.Record("console", d)
	return block.ReadOptional(d, "console", block.Options{
		"manage": {Usage: "manage [open|<user...>]", Max: math.MaxInt, Line: readManage(&b.to.Console.Manage, &b.to.Console.ManageUsers)},
		"home":   {Usage: "home on|off", Min: 1, Max: 1, Line: block.On(&b.to.Console.Home)},
	})
}

// readManage returns the function that reads manage of console and configs.
func readManage(manage *string, users *[]string) func([]string) error {
	return func(args []string) error {
		if len(args) == 1 && args[0] == manageOpen {
			*manage = manageOpen
			return nil
		}
		if slices.Contains(args, manageOpen) {
			return errors.New("open must be alone, because it allows everybody; remove it, or the users")
		}
		*manage, *users = manageUser, args
		return checkManageUsers(args)
	}
}
