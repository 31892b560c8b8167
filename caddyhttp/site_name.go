package caddyhttp

import (
	"errors"
	"strings"
)

// maxSiteName is the maximum length of the name of a site, in bytes.
const maxSiteName = 64

var (
	errSiteName   = errors.New("the name of a site has 1 to 64 letters, digits, _ and -")
	errGlobalSite = errors.New("it names one site, so it belongs into the notify of that site, and not into the global option")
)

// checkSiteName returns an error if a site cannot have the name.
func checkSiteName(name string) error {
	outside := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if name == "" || len(name) > maxSiteName || strings.ContainsFunc(name, outside) {
		return errSiteName
	}
	return nil
}

// checkSite returns an error if the settings have a name that they cannot have. global means that
// the settings are for all sites.
func (s *Settings) checkSite(global bool) error {
	switch {
	case s.Site == "":
		return nil
	case global:
		return errGlobalSite
	}
	return checkSiteName(s.Site)
}
