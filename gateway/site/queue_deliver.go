package site

import "slices"

// Candidates returns the settings in which the destination of a message may be
// found: those of the site that the message came to, and those of the app. If
// the configuration does not have the site any more, for example because its
// address has changed, they are those of all sites.
func (a *Directory) Candidates(siteID string) []*Site {
	settings := a.SettingsOf(siteID)
	if settings == nil {
		settings = a.Sites
	}
	if siteID == "" {
		return settings
	}
	return append(slices.Clip(settings), a.Resolved)
}
