package httpapi

import "github.com/caddy-notify/caddy-notify/gateway/console/view"

// SilenceLengths returns how long a silence can last, to choose from.
func SilenceLengths() []view.Choice {
	return []view.Choice{
		{Value: "30m", Label: "30 minutes"},
		{Value: "2h", Label: "2 hours", Chosen: true},
		{Value: "8h", Label: "8 hours, for a night"},
		{Value: "1d", Label: "1 day"},
		{Value: "3d", Label: "3 days"},
		{Value: "7d", Label: "1 week"},
		{Value: "30d", Label: "30 days"},
	}
}
