package site

// HasInboxes reports whether a key of the site has an inbox, or saved keys do.
func (r *Site) HasInboxes() bool {
	if r.Saved.Inbox != 0 {
		return true
	}
	for _, k := range r.Keys {
		if k.Inbox != 0 {
			return true
		}
	}
	return false
}

// HasInboxes reports whether a key of the app or of a site has an inbox.
func (a *Directory) HasInboxes() bool {
	if a.Resolved.HasInboxes() {
		return true
	}
	for _, r := range a.Sites {
		if r.HasInboxes() {
			return true
		}
	}
	return false
}
