// Package services is the catalogue of notification services: one file for each
// service, and a package below this one for each that needs several files.
// Importing it registers them all.
package services

import (
	_ "github.com/caddy-notify/caddy-notify/notifier/services/irc"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/mailto"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/matrix"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/mqtt"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/office365"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/slack"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/telegram"
	_ "github.com/caddy-notify/caddy-notify/notifier/services/xmpp"
)
