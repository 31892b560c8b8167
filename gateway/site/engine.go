package site

// Directory has the sites of a configuration. What comes in by mail, from events and from
// logs belongs to the site of the app.
type Directory struct {
	Resolved *Site   // of the app
	Sites    []*Site // of the handlers, which add theirs in Provision

	SiteIndex func() *Index // not called before all apps are provisioned
}
