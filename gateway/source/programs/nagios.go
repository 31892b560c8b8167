package programs

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Nagios and Icinga post the same fields.
func init() {
	source.Register(source.Format{
		Name:      "nagios",
		Program:   "Nagios",
		Doc:       "https://assets.nagios.com/downloads/nagioscore/docs/nagioscore/4/en/notifications.html",
		Checked:   "4.5.12",
		Has:       nagiosHas,
		Templates: nagiosTemplates,
	})
	source.Register(source.Format{
		Name:      "icinga",
		Program:   "Icinga",
		Doc:       "https://icinga.com/docs/icinga-2/latest/doc/03-monitoring-basics/#notification-commands",
		Checked:   "2.16.0",
		Has:       nagiosHas,
		Templates: nagiosTemplates,
	})
	source.Register(source.Format{
		Name:    "checkmk",
		Program: "Checkmk",
		Doc:     "https://docs.checkmk.com/latest/en/notifications.html",
		Checked: "2.4.0",
		// The script also posts the name of the site, which other programs do not have.
		Has:       slices.Concat(nagiosHas, []string{"site"}),
		Templates: nagiosTemplates,
	})
}
