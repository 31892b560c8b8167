package site

// Home returns where a key is defined: in the space of saved keys, in the site with
// the ID, or for all sites. That of a saved key has its ID, so that records of a key that
// was deleted do not belong to a later one of its name.
func (k *Key) Home(siteID string) string {
	switch {
	case k.Saved:
		return SavedHome(k.Space, k.ID)
	case k.OfSite:
		return "site " + siteID
	}
	return ""
}

// SavedHome returns the home of the saved key with an ID, which keys that were saved by an
// early version do not have. A space has no blanks in its name.
func SavedHome(space, id string) string {
	if id == "" {
		return "space " + space
	}
	return "space " + space + " " + id
}
