package notifier

import (
	"slices"
	"strings"
)

// login moves the parameters user, password and pass of the query to the places
// before the host, for every service that has these places, as Apprise does.
// The service may call the parameters of these places differently.
func (d *description) login(u *rawURL) {
	u.query = slices.DeleteFunc(u.query, func(q queryParam) bool {
		key := strings.ToLower(q.key)
		switch {
		case q.value == "":
		case key == "user" && d.hasPlace(u.scheme, func(t *template) place { return t.user }):
			u.user, u.hasUser = q.value, true
			return true
		case (key == "password" || key == "pass") && d.hasPlace(u.scheme, func(t *template) place { return t.password }):
			u.password, u.hasUser, u.hasPassword = q.value, true, true
			return true
		}
		return false
	})
}

// hasPlace reports whether a template has the place. The scheme is that of a
// service, or http or https for an address that the service gives out, which
// stands for the first template.
func (d *description) hasPlace(scheme string, of func(*template) place) bool {
	if scheme == "http" || scheme == "https" {
		return of(d.templates[0]).name != ""
	}
	return slices.ContainsFunc(d.templates, func(t *template) bool {
		_, ok := t.scheme(scheme)
		return ok && of(t).name != ""
	})
}
