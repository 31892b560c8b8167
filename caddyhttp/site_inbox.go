package caddyhttp

// hasInboxes reports whether a key of the site has an inbox, or saved keys do.
func (r *resolved) hasInboxes() bool {
	if r.saved.inbox != 0 {
		return true
	}
	for _, k := range r.keys {
		if k.inbox != 0 {
			return true
		}
	}
	return false
}

// hasInboxes reports whether a key of the app or of a site has an inbox.
func (a *directory) hasInboxes() bool {
	if a.resolved.hasInboxes() {
		return true
	}
	for _, r := range a.sites {
		if r.hasInboxes() {
			return true
		}
	}
	return false
}
