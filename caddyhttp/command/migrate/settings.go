package migrate

import "github.com/caddy-notify/caddy-notify/caddyhttp"

// settings are the settings of an Apprise API in the terms of a Caddyfile.
type settings struct {
	env    environment
	report *report

	address     string // of the site
	prefix      string // of all paths, or ""
	services    *caddyhttp.Services
	attachments []string // lines of the block
	pageOff     bool
	noRedirects bool
	noURLs      bool     // requests cannot bring URLs
	origins     []string // trusted_origins
	login       *login   // nil if everybody may use the Apprise API
}

// newSettings returns the settings that the environment of an Apprise API stands for.
func newSettings(env environment, r *report) (*settings, error) {
	s := &settings{env: env, report: r, address: "http://:8000", services: new(caddyhttp.Services)}
	if err := s.setServices(); err != nil {
		return nil, err
	}
	s.setVariables()
	return s, s.setLogin()
}
