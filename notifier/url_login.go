package notifier

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// login moves the parameters user, password and pass of the query to the places
// before the host, for every service that has these places, as Apprise does.
// The service may call the parameters of these places differently.
func (d *description) login(u *urlsyntax.URL) {
	u.Query = slices.DeleteFunc(u.Query, func(q urlsyntax.QueryParam) bool {
		key := strings.ToLower(q.Key)
		switch {
		case q.Value == "":
		case key == "user" && d.hasPlace(u.Scheme, userPlace):
			u.User, u.HasUser = q.Value, true
			return true
		case (key == "password" || key == "pass") && d.hasPlace(u.Scheme, passwordPlace):
			u.Password, u.HasUser, u.HasPassword = q.Value, true, true
			return true
		}
		return false
	})
}

func userPlace(t *urlsyntax.Template) urlsyntax.Place     { return t.User }
func passwordPlace(t *urlsyntax.Template) urlsyntax.Place { return t.Password }

// hasPlace reports whether a template has the place. The scheme is a service's, or http or https
// for an address that the service hands out, which stands for the first template.
func (d *description) hasPlace(scheme string, of func(*urlsyntax.Template) urlsyntax.Place) bool {
	if scheme == "http" || scheme == "https" {
		return of(d.templates[0]).Name != ""
	}
	return slices.ContainsFunc(d.templates, func(t *urlsyntax.Template) bool {
		_, ok := t.Scheme(scheme)
		return ok && of(t).Name != ""
	})
}
