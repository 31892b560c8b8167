package site

// Index has the sites of a configuration by their IDs. The ID of a site
// follows from its addresses: the addresses that its servers listen on, its
// hosts, and the prefix of the path. So it is the same after a reload and a
// restart, and in each gateway with the same configuration.
//
// Handlers with a common address are one site, and so are those of one notify
// block, which Caddy copies into several servers if the site has several
// addresses. What comes in by mail, from events and from logs belongs to the
// site of the app, whose ID is "".
type Index struct {
	Ids  map[*Site]string
	ByID map[string][]*Site
}

// SiteOf returns the ID of the site with these settings. It is called when all
// apps are provisioned, because the ID depends on the routes of all servers.
func (a *Directory) SiteOf(settings *Site) string { return a.SiteIndex().Ids[settings] }

// SettingsOf returns the settings of the handlers of a site, or nil if the
// configuration does not have the site.
func (a *Directory) SettingsOf(siteID string) []*Site {
	if siteID == "" {
		return []*Site{a.Resolved}
	}
	return a.SiteIndex().ByID[siteID]
}
