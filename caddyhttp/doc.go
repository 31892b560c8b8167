// Package caddyhttp connects the notification gateway to Caddy: it has the modules of the
// handler and the app, their settings, and what is checked when a configuration loads. The
// packages below gateway, which know nothing of Caddy, do the rest.
//
//	handler.go     the HTTP handler http.handlers.notify
//	app.go         the app notify, whose settings all sites share
//	settings.go    the settings of both; key.go the settings of a key, and a file for each other
//	               subject: configs, console, expect, push, queue, readers, rules, source
//	caddyfile.go   reads them from a Caddyfile; key_options.go describes the options of a key,
//	               rules.go those that are rules; resolve.go makes the options of a site of them
//	effect.go      the checks that a setting can have an effect; sites.go those for which all
//	               sites must be known
//	read.go        a configuration as commands read it, without starting it
//	queue_open.go  the queue of the process, which a reload keeps open
//	state.go       what services keep over a restart, on Caddy's storage
//
// Caddy's other modules and front ends are packages of their own, which know neither this
// one nor each other:
//
//	admin    the admin API
//	events   messages about events; it also emits the gateway's own events
//	logs     messages about log entries
//	smtp     messages from mails: the settings of the mail server, its listeners, its accounts
//	routing  what of a configuration reaches a site; warnings about sites that are open
//
// Below them, internal/process has what outlives a reload, internal/recipient who gets events
// and logs, internal/block what reads a Caddyfile, and internal/placeholder Caddy's
// placeholders. Package command, above all of them, has the commands.
//
// In this package, caddyhttp.X is a name of Caddy's package caddyhttp.
package caddyhttp
