package site

import "context"

// SettingsOfKey returns the settings that have the key of a place, and the ID of their site;
// nil if it is gone.
func (a *Directory) SettingsOfKey(ctx context.Context, of Place) (*Site, string) {
	for _, s := range append([]*Site{a.Resolved}, a.Sites...) {
		siteID := a.SiteOf(s)
		k, err := s.Key(ctx, of.Key)
		if err == nil && k.DevicePlace(siteID) == of {
			return s, siteID
		}
	}
	return nil, ""
}
