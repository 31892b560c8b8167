// Package caddyhttp connects the notification gateway to Caddy: it has the modules, their
// settings, and what is checked when a configuration loads. The packages below gateway, which
// know nothing of Caddy, do the rest.
//
//	handler.go       the HTTP handler http.handlers.notify
//	app.go           the app notify, whose settings all sites share
//	config*.go       the settings of both; caddyfile*.go reads them from a Caddyfile
//	config_read*.go  a configuration as commands read it, without starting it
//	config_guard.go  warnings about sites without authentication
//	shared.go        what outlives a reload
//	state_store.go   what services keep over a restart, on Caddy's storage
//	event*.go        events as messages, with package events; recipient.go who gets them
//	log*.go          log entries as messages, with package logdigest
//	smtp*.go         mails as messages
//	admin*.go, *_admin.go  the admin API
//
// In this package, caddyhttp.X is a name of Caddy's package caddyhttp.
package caddyhttp
