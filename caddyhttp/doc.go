// Package caddyhttp connects the notification gateway to Caddy. Package api is
// the HTTP API, package notifier sends, and package command is caddy notify.
//
//	handler*.go      the HTTP handler http.handlers.notify
//	page*.go         fill the pages of package console, and handle their forms
//	app.go           the app notify, whose settings all sites share
//	config*.go       the settings of both; caddyfile*.go reads them from a Caddyfile
//	config_read*.go  a configuration as commands read it, without starting it
//	config_guard.go  warnings about sites without authentication
//	shared.go        what outlives a reload: connections, sessions, counters, history
//	state_store.go   what services keep over a restart, on Caddy's storage
//	send.go          delivery of a message from any source
//	queue*.go        durable delivery: settings, life cycle, sending, and messages as a resource
//	background.go    sends messages of events and logs; recipient.go who gets them
//	event*.go        events as messages, with package events, and the events of the gateway
//	log*.go          log entries as messages, with package logdigest
//	saved*.go        saved configurations, with package configstore
//	admin*.go        the admin API; history.go has the recent messages
//	refusal.go       requests that were refused: log lines, metric, history
//	metrics.go       Prometheus metrics; tracing.go spans
//
// In this package, caddyhttp.X is a name of Caddy's package caddyhttp.
package caddyhttp
