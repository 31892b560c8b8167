package services

import "github.com/caddy-notify/caddy-notify/notifier"

// pushPriorities are the priorities of Prowl, which other push services have
// adopted.
var pushPriorities = []notifier.Choice{
	{Name: "low", Value: -2},
	{Name: "moderate", Value: -1},
	{Name: "normal", Value: 0},
	{Name: "high", Value: 1},
	{Name: "emergency", Value: 2},
}

// pushsaferPriorities are the same with the names that Apprise has for them.
var pushsaferPriorities = []notifier.Choice{
	{Name: "low", Value: -2},
	{Name: "moderate", Value: -1, Synonyms: []string{"medium"}},
	{Name: "normal", Value: 0},
	{Name: "high", Value: 1},
	{Name: "emergency", Value: 2},
}
